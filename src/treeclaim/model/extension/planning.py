# SPDX-License-Identifier: Apache-2.0
"""Values of plans, besides the Forest (contract page 101)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from treeclaim.model.extension.batches.batch import BatchEntry
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True)
class AllocationColumns:
    """Allocations of some consumers, each a place in all of the lists.

    Attributes:
        consumer: Uuids of consumers.
        provider_id, class_id: What is allocated.
        used: Units.
    """

    consumer: Sequence[str]
    provider_id: Sequence[int]
    class_id: Sequence[int]
    used: Sequence[int]


@dataclass(frozen=True, slots=True)
class OwnerColumns:
    """Records of some consumers, each a place in all of the lists.

    Attributes:
        uuid: UUID of the consumer.
        project: The owner's project.
        type: Name of the type; None if it never got one.
        generation: The generation of the consumer.
    """

    uuid: Sequence[str]
    project: Sequence[str]
    type: Sequence[str | None]
    generation: Sequence[int]


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """Kept requests of some consumers, each a place in both lists.

    Attributes:
        consumer: Uuids.
        request: JSON lists of queries.
    """

    consumer: Sequence[str]
    request: Sequence[str]


@dataclass(frozen=True, slots=True)
class HoldsRead:
    """The holds of the cloud.

    Attributes:
        holds: Uuids of those that exist.
        drawn: What consumers have drawn from holds that return, by consumer and hold.
    """

    holds: frozenset[str]
    drawn: Mapping[str, Mapping[str, Mapping[str, Mapping[str, int]]]]


Document = dict[str, Any]
"""An answer as clients see it."""

ConsumersRead = AllocationColumns | OwnerColumns | RequestColumns | HoldsRead
"""A part of what is read of consumers, all as of one moment."""


@dataclass(frozen=True, slots=True)
class AssumptionSet:
    """The assumptions of a question (section 1), in the order in which they are applied.

    Attributes:
        release: Uuids of consumers that hold nothing any more.
        without: Uuids of providers whose trees are gone.
        providers: Wanted states of providers.
        place: Requests of consumers that are placed, and how many of each.
        is_stated: Whether the call has the member `given`, which may be empty.
    """

    release: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    providers: tuple[BatchEntry, ...] = ()
    place: tuple[tuple[CandidateRequest, int], ...] = field(default=())
    is_stated: bool = True

    def __bool__(self) -> bool:
        """Return whether the call has the member `given`."""
        return self.is_stated


NO_ASSUMPTIONS = AssumptionSet(is_stated=False)
"""Things as they are."""


@dataclass(frozen=True, slots=True)
class PlanRule:
    """A rule between consumers that are placed anew, or moved (section 5).

    Attributes:
        domains: Uuids of aggregates; None where every tree is a domain.
        consumers: Whom it is for, and who counts.
        max_per_domain: No move brings a consumer into a domain with so many of the others.
    """

    domains: tuple[str, ...] | None
    consumers: frozenset[str]
    max_per_domain: int


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures to examine, and the members to report (section 4).

    Attributes:
        domains: Uuids of aggregates; None where every tree is a domain.
        types: Consumer types that are placed anew; None for all.
        from_holds: Holds that are in nobody's way.
        rules: For who is placed anew.
        limit: Most domains in the response.
        shows_all: Whether the response lists surviving domains too.
        explain: Whether the response says why the first consumer found no place.
    """

    domains: tuple[str, ...] | None = None
    types: frozenset[str] | None = None
    from_holds: tuple[str, ...] = ()
    rules: tuple[PlanRule, ...] = ()
    limit: int = 100
    shows_all: bool = False
    explain: bool = False
