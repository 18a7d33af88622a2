# SPDX-License-Identifier: Apache-2.0
"""The table of microversions: the features of each, by name (contract page 10).

The service, the client and the documents all read it. Code whose behaviour depends on a microversion
checks `version.has(Feature.X)`; only this module maps features to microversions.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Self

SERVICE_TYPE = "placement"
"""Service type with which a client requests a microversion of the Placement API."""

EXTENSION = "treeclaim"
"""Service type with which a client requests the extension (contract page 97)."""

_MAJOR = 1
"""All microversions are minor versions of this one."""


class _NumberedFeature(IntEnum):
    """A feature of a version; the value is the minor version.

    Attributes:
        brought: The change as clients see it, in a sentence for the documents.
    """

    brought: str

    def __new__(cls, minor: int, brought: str) -> Self:
        """Make a member that is a number and has a sentence."""
        member = int.__new__(cls, minor)
        member._value_ = minor
        member.brought = brought
        return member

    @property
    def version(self) -> str:
        """Return the version as clients write it."""
        return f"{_MAJOR}.{self.value}"


class Feature(_NumberedFeature):
    """Features of the microversions of the Placement API; each has exactly one."""

    AGGREGATES = 1, "`/resource_providers/{uuid}/aggregates`"
    RESOURCE_CLASSES = 2, "`/resource_classes`, and custom resource classes"
    MEMBER_OF_FILTER = 3, "`GET /resource_providers?member_of=`"
    RESOURCES_FILTER = 4, "`GET /resource_providers?resources=`"
    DELETE_ALL_INVENTORIES = 5, "`DELETE /resource_providers/{uuid}/inventories`"
    TRAITS = 6, "`/traits` and `/resource_providers/{uuid}/traits`"
    ENSURE_RESOURCE_CLASS = 7, "`PUT /resource_classes/{name}` creates the class if it is missing"
    ALLOCATION_OWNERS_REQUIRED = 8, "`PUT /allocations` requires `project_id` and `user_id`"
    USAGES = 9, "`GET /usages` of a project or user"
    ALLOCATION_CANDIDATES = 10, "`GET /allocation_candidates`"
    ALLOCATIONS_LINK = 11, "Resource providers link to their allocations"
    ALLOCATIONS_BY_PROVIDER = 12, "Allocations are written as an object by provider"
    MANAGE_ALLOCATIONS = 13, "`POST /allocations` for several consumers at once"
    NESTED_PROVIDERS = 14, "Resource providers have parents and roots; `in_tree` filters by tree"
    CACHE_HEADERS = 15, "Answers have `Last-Modified` and `Cache-Control`"
    CANDIDATE_LIMIT = 16, "`GET /allocation_candidates?limit=`"
    CANDIDATE_TRAITS = 17, "`GET /allocation_candidates?required=`, and traits in summaries"
    REQUIRED_FILTER = 18, "`GET /resource_providers?required=`"
    AGGREGATE_GENERATION = 19, "Aggregates are shown and replaced with the provider's generation"
    CREATED_PROVIDER_SHOWN = 20, "`POST /resource_providers` answers with the provider"
    CANDIDATE_MEMBER_OF = 21, "`GET /allocation_candidates?member_of=`"
    FORBIDDEN_TRAITS = 22, "`required=!TRAIT` forbids a trait"
    ERROR_CODES = 23, "Errors have a `code`"
    REPEATED_MEMBER_OF = 24, "`member_of` may be repeated"
    GRANULAR_GROUPS = 25, "Numbered request groups, and `group_policy`"
    ZERO_CAPACITY = 26, "An inventory's `reserved` may be equal to its `total`"
    ALL_CLASSES_IN_SUMMARIES = 27, "Summaries show all resource classes of a provider"
    CONSUMER_GENERATIONS = 28, "Consumers have generations"
    NESTED_CANDIDATES = 29, "Candidates take resources from several providers of a tree"
    RESHAPER = 30, "`POST /reshaper`"
    CANDIDATE_IN_TREE = 31, "`GET /allocation_candidates?in_tree=`"
    FORBIDDEN_AGGREGATES = 32, "`member_of=!AGGREGATE` forbids an aggregate"
    NAMED_GROUPS = 33, "Suffixes of request groups may be names"
    MAPPINGS = 34, "Candidates say which provider satisfies which request group"
    ROOT_REQUIRED = 35, "`GET /allocation_candidates?root_required=`"
    SAME_SUBTREE = 36, "`same_subtree`, and request groups without resources"
    REPARENTING = 37, "A resource provider may be moved to another parent, or to the top"
    CONSUMER_TYPES = 38, "Consumers have types"
    ANY_TRAITS = (
        39,
        "`required=in:T1,T2` asks for any of several traits; `required` may be repeated",
    )


class ExtensionFeature(_NumberedFeature):
    """Features of the `treeclaim` extension. It is in beta, and has one version."""

    ALL = 0, "Everything on contract pages 97 to 102"


EXTENSION_VERSION = ExtensionFeature.ALL.version
"""The only version of the extension."""


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A microversion; they compare component by component, so that 1.10 is after 1.9.

    Attributes:
        major, minor: The numbers of the Placement API's microversion.
        is_extended: Whether the client opted in to the `treeclaim` extension (page 97).
    """

    major: int
    minor: int
    is_extended: bool = False

    def __str__(self) -> str:
        """Write it as clients do."""
        return f"{self.major}.{self.minor}"

    @property
    def header(self) -> str:
        """Return the header with the version of the response."""
        extension = f", {EXTENSION} {EXTENSION_VERSION}" if self.is_extended else ""
        return f"{SERVICE_TYPE} {self}{extension}"

    def has(self, feature: Feature) -> bool:
        """Return whether a feature is there at this version."""
        return self.minor >= feature

    def brings(self, feature: Feature | ExtensionFeature) -> bool:
        """Return whether a feature, of the Placement API or of the extension, is available."""
        if isinstance(feature, ExtensionFeature):
            return self.is_extended
        return self.has(feature)


MINIMUM = Version(_MAJOR, 0)
"""The first microversion."""

MAXIMUM = Version(_MAJOR, max(Feature))
"""The last microversion."""

NEWEST = replace(MAXIMUM, is_extended=True)
"""The version of a client that requests the latest of both."""
