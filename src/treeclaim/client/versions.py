# SPDX-License-Identifier: Apache-2.0
"""The versions of a server, and the version that a feature needs."""

from dataclasses import dataclass

from treeclaim.client.errors import UnsupportedFeatureError
from treeclaim.model import microversions

LATEST_MINOR = microversions.MAXIMUM.minor
"""The last microversion 1.N of the Placement API."""

LATEST_EXTENSION = microversions.ExtensionFeature.ALL
"""The last version 1.N of the `treeclaim` extension."""


@dataclass(frozen=True, slots=True)
class Need:
    """A feature and what it needs.

    Attributes:
        feature: In words, with the parameter's name.
        minor: Lowest microversion 1.N, mostly a `Feature`.
        extension: Lowest version 1.N of the `treeclaim` extension; None if it is not part of it.
    """

    feature: str
    minor: int
    extension: int | None = None

    @property
    def version(self) -> str:
        """Return the version needed, as the header has it."""
        if self.extension is None:
            return f"placement 1.{self.minor}"
        return f"treeclaim 1.{self.extension}"


@dataclass(frozen=True, slots=True)
class ServerVersions:
    """The versions of a server.

    Attributes:
        minor: Highest microversion 1.N.
        extension: Highest version 1.N of the `treeclaim` extension; None if it has none.
    """

    minor: int
    extension: int | None

    def has(self, need: Need) -> bool:
        """Tell whether a feature is there."""
        if need.extension is not None and (
            self.extension is None or need.extension > self.extension
        ):
            return False
        return need.minor <= self.minor

    @property
    def header(self) -> str:
        """Return the version header that asks for the newest common versions."""
        extension = "" if self.extension is None else f", treeclaim 1.{self.extension}"
        return f"placement 1.{self.minor}{extension}"

    def require(self, *needs: Need) -> None:
        """Check that features are there.

        Raises:
            UnsupportedFeatureError: for the first one that is not.
        """
        for need in needs:
            if not self.has(need):
                raise UnsupportedFeatureError(
                    f"{need.feature} needs {need.version}, but the server has {self.header} only"
                )
