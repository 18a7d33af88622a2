# SPDX-License-Identifier: Apache-2.0
"""The table of microversions: the features of each, by name (contract page 10).

Only this module maps features to microversions. All other code checks `version.has(Feature.X)`.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

SERVICE_TYPE = "placement"
"""Service type with which a client requests a microversion of the Placement API."""

EXTENSION = "treeclaim"
"""Service type with which a client requests the extension (contract page 97)."""

_MAJOR = 1


class Feature(IntEnum):
    """The feature of each microversion, by minor version (contract page 10, section 4)."""

    AGGREGATES = 1
    RESOURCE_CLASSES = 2
    MEMBER_OF_FILTER = 3
    RESOURCES_FILTER = 4
    DELETE_ALL_INVENTORIES = 5
    TRAITS = 6
    ENSURE_RESOURCE_CLASS = 7
    ALLOCATION_OWNERS_REQUIRED = 8
    USAGES = 9
    ALLOCATION_CANDIDATES = 10
    ALLOCATIONS_LINK = 11
    ALLOCATIONS_BY_PROVIDER = 12
    MANAGE_ALLOCATIONS = 13
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
    RESHAPER = 30
    CANDIDATE_IN_TREE = 31
    FORBIDDEN_AGGREGATES = 32
    NAMED_GROUPS = 33
    MAPPINGS = 34
    ROOT_REQUIRED = 35
    SAME_SUBTREE = 36
    REPARENTING = 37
    CONSUMER_TYPES = 38
    ANY_TRAITS = 39
    EXTENSION = 40
    """The `treeclaim` extension, which belongs to no microversion."""

    @property
    def version(self) -> str:
        """Return the version in the form of the header."""
        return f"{_MAJOR}.{self.value}"


EXTENSION_MINOR = 0
EXTENSION_VERSION = f"{_MAJOR}.{EXTENSION_MINOR}"
"""The only version of the extension, which is in beta."""


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A microversion of the Placement API, and whether the client opted in to the extension (page 97)."""

    major: int
    minor: int
    is_extended: bool = False

    def __str__(self) -> str:
        """Return the microversion in the form of the header."""
        return f"{self.major}.{self.minor}"

    @property
    def header(self) -> str:
        """Return the value of the response header OpenStack-API-Version."""
        extension = f", {EXTENSION} {EXTENSION_VERSION}" if self.is_extended else ""
        return f"{SERVICE_TYPE} {self}{extension}"

    def has(self, feature: Feature) -> bool:
        """Return whether a feature is available at this version."""
        return self.minor >= feature or (self.is_extended and feature is Feature.EXTENSION)


MINIMUM = Version(_MAJOR, 0)
MAXIMUM = Version(_MAJOR, Feature.ANY_TRAITS)
NEWEST = replace(MAXIMUM, is_extended=True)
"""The latest microversion with the extension."""
