# SPDX-License-Identifier: Apache-2.0
"""Which versions a server has, and which a feature needs."""

from dataclasses import dataclass

from treeclaim.client.errors import UnsupportedFeatureError

LATEST_MINOR = 39
"""The last microversion of the Placement API, 1.39."""

EXTENSION = "treeclaim 1.0"


@dataclass(frozen=True, slots=True)
class Need:
    """A feature and what it needs.

    Attributes:
        feature: In words, with the parameter's name.
        minor: Lowest microversion 1.N.
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

    def require(self, *needs: Need) -> None:
        """Check that features are there.

        Raises:
            UnsupportedFeatureError: for the first one that is not.
        """
        for one in needs:
            if one.minor > self.minor or (one.extension and not self.extension):
                raise UnsupportedFeatureError(
                    f"{one.feature} needs {one.version}, but the server has {self.header} only"
                )
