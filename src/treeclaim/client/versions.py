# SPDX-License-Identifier: Apache-2.0
"""Which versions a server has, and which a feature needs."""

from dataclasses import dataclass

from treeclaim.client.errors import UnsupportedFeatureError
from treeclaim.model import microversions
from treeclaim.model.microversions import Feature

LATEST_MINOR = microversions.MAXIMUM.minor
"""The last microversion 1.N of the Placement API."""

EXTENSION = f"{microversions.EXTENSION} {microversions.EXTENSION_VERSION}"
"""The extension, as the header asks for it."""


@dataclass(frozen=True, slots=True)
class Need:
    """A feature and what it needs.

    Attributes:
        feature: In words, with the parameter's name.
        minor: Lowest microversion 1.N, mostly a `Feature`.
        extension: True if it is in the `treeclaim` extension.
    """

    feature: str
    minor: int
    extension: bool = False

    @property
    def version(self) -> str:
        """Return the version needed, as the header has it."""
        return EXTENSION if self.extension else f"placement 1.{self.minor}"


@dataclass(frozen=True, slots=True)
class ServerVersions:
    """What a server has.

    Attributes:
        minor: Highest microversion 1.N.
        extension: True if it has the `treeclaim` extension.
    """

    minor: int
    extension: bool

    @property
    def header(self) -> str:
        """Return the version header that asks for the most there is."""
        return f"placement 1.{self.minor}" + (f", {EXTENSION}" if self.extension else "")

    def has(self, feature: Feature) -> bool:
        """Tell whether a feature of the Placement API is there."""
        return self.minor >= feature

    def require(self, *needs: Need) -> None:
        """Check that features are there.

        Raises:
            UnsupportedFeatureError: for the first one that is not.
        """
        for need in needs:
            if need.minor > self.minor or (need.extension and not self.extension):
                raise UnsupportedFeatureError(
                    f"{need.feature} needs {need.version}, but the server has {self.header} only"
                )
