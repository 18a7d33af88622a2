# SPDX-License-Identifier: Apache-2.0
"""Microversions: negotiation, and the one table of what each of them changed.

Code that behaves differently asks `version.has(Feature.X)`; this file alone says since when.
Rules: contract page 10.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

from treeclaim.api.protocol.remembering import remembering_short

SERVICE_TYPE = "placement"

_REMEMBERED, _LONGEST_REMEMBERED = 256, 256
"""Headers, and characters of each: 64 KiB. The longest that is in order has some thirty."""


class Feature(IntEnum):
    """What a client sees from a microversion on; the value is the minor version.

    Operations that are new in a microversion say so themselves (`Operation.since`).
    """

    AGGREGATES = 1
    MEMBER_OF_FILTER = 3
    RESOURCES_FILTER = 4
    DELETE_ALL_INVENTORIES = 5
    TRAITS = 6
    ENSURE_RESOURCE_CLASS = 7
    ALLOCATION_OWNERS_REQUIRED = 8
    ALLOCATIONS_LINK = 11
    ALLOCATIONS_BY_PROVIDER = 12
    NESTED_PROVIDERS = 14
    CACHE_HEADERS = 15
    CANDIDATE_LIMIT = 16
    CANDIDATE_TRAITS = 17
    REQUIRED_FILTER = 18
    AGGREGATE_GENERATION = 19
    CREATED_PROVIDER_SHOWN = 20
    CANDIDATE_MEMBER_OF = 21
    FORBIDDEN_TRAITS = 22
    ERROR_CODES = 23
    REPEATED_MEMBER_OF = 24
    GRANULAR_GROUPS = 25
    ZERO_CAPACITY = 26
    ALL_CLASSES_IN_SUMMARIES = 27
    CONSUMER_GENERATIONS = 28
    NESTED_CANDIDATES = 29
    CANDIDATE_IN_TREE = 31
    FORBIDDEN_AGGREGATES = 32
    NAMED_GROUPS = 33
    MAPPINGS = 34
    ROOT_REQUIRED = 35
    SAME_SUBTREE = 36
    REPARENTING = 37
    CONSUMER_TYPES = 38
    ANY_TRAITS = 39


NO_EXTENSION = -1
"""Stands for the extension's version where the client did not ask for it."""


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A microversion; they compare component by component, so that 1.10 is after 1.9.

    Attributes:
        major, minor: Of the Placement API.
        extension: Minor version 1.N of the `treeclaim` extension (page 97), if asked for.
    """

    major: int
    minor: int
    extension: int = NO_EXTENSION

    def __str__(self) -> str:
        """Write it as clients do."""
        return f"{self.major}.{self.minor}"

    @property
    def header(self) -> str:
        """Return the header that tells the client which version it was answered at."""
        extension = f", {EXTENSION} 1.{self.extension}" if self.extended else ""
        return f"{SERVICE_TYPE} {self}{extension}"

    @property
    def extended(self) -> bool:
        """Tell whether the client asked for the extension."""
        return self.extension != NO_EXTENSION

    def has_extension(self, minor: int) -> bool:
        """Tell whether the client asked for version 1.N of the extension or a later one."""
        return self.extension >= minor

    def has(self, feature: Feature) -> bool:
        """Tell whether a feature is there at this version."""
        return self.minor >= feature


MINIMUM = Version(1, 0)
MAXIMUM = Version(1, 39)

EXTENSION = "treeclaim"
"""Service type by which a client asks for the extension."""

EXTENSION_MAXIMUM = 1
"""Highest version 1.N of the extension (pages 98 and 99); the lowest is 1.0 (page 97)."""

NEWEST = replace(MAXIMUM, extension=EXTENSION_MAXIMUM)
"""What a client gets that asks for the latest of both."""

_EXTENSIONS = {"latest": EXTENSION_MAXIMUM} | {
    f"1.{minor}": minor for minor in range(EXTENSION_MAXIMUM + 1)
}


class InvalidVersionError(Exception):
    """The version header cannot be read; carries the version as it was sent."""


class UnacceptableVersionError(Exception):
    """The version is outside of what is served; carries the version as it was sent."""


class UnacceptableExtensionError(Exception):
    """The version of the extension, or what it is combined with, is not served; says which."""


@remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
def negotiate(header: str | None) -> Version:
    """Return the version that a header asks for (contract page 10, section 2).

    Raises:
        InvalidVersionError, UnacceptableVersionError, UnacceptableExtensionError.
    """
    version = _placement_version(_asked(header or "", SERVICE_TYPE))
    extension = _asked(header or "", EXTENSION)
    if extension is None:
        return version
    if extension not in _EXTENSIONS:
        raise UnacceptableExtensionError(f"{EXTENSION} {extension}")
    if version != MAXIMUM:
        raise UnacceptableExtensionError(
            f"{EXTENSION} {extension} needs {SERVICE_TYPE} {MAXIMUM}, not {version}"
        )
    return replace(version, extension=_EXTENSIONS[extension])


def _placement_version(asked: str | None) -> Version:
    if asked is None:
        return MINIMUM
    if asked == "latest":
        return MAXIMUM
    parts = asked.split(".")
    try:
        major, minor = (int(part) for part in parts)
    except ValueError:
        raise InvalidVersionError(asked) from None
    version = Version(major, minor)
    if not MINIMUM <= version <= MAXIMUM:
        raise UnacceptableVersionError(asked)
    return version


def _asked(header: str, service_type: str) -> str | None:
    """Return the text behind the last mention of a service, None if it is not mentioned."""
    asked = None
    for element in header.split(","):
        service, _, version = element.strip().partition(" ")
        if service.lower() == service_type and version.strip():
            asked = version.strip()
    return asked
