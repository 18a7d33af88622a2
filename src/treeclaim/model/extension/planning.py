# SPDX-License-Identifier: Apache-2.0
"""Questions about a cloud as it would be: assumptions, mixes, failures and moves (contract page 101)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from treeclaim.model.extension.batch import BatchEntry
from treeclaim.model.request import CandidateRequest, ValueObject

MIX_NAME = "[A-Za-z0-9_.-]{1,64}"
"""Pattern of the names of mixes."""

_IS_MIX_NAME = re.compile(MIX_NAME)

MOST_REQUESTS = 64
"""Requests that a mix may have."""

MOST_WEIGHT = 1_000_000
"""The greatest weight of a request of a mix."""


def is_mix_name(text: str) -> bool:
    """Return whether a mix may have this name."""
    return _IS_MIX_NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class MixRequest:
    """A request of a mix.

    Attributes:
        request: The request of a consumer; it has no order, no limit, and draws from no hold.
        weight: Its weight relative to the others, 1 to `MOST_WEIGHT`.
    """

    request: CandidateRequest
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Mix(ValueObject):
    """The requests that a cloud expects. Mixes are equal by value.

    Attributes:
        name: As queries have it.
        requests: By name, 1 to `MOST_REQUESTS`.
    """

    name: str
    requests: Mapping[str, MixRequest]
    _value: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    @property
    def classes(self) -> frozenset[str]:
        """Return the names of all classes in the requests."""
        return frozenset(
            name
            for mix_entry in self.requests.values()
            for group in mix_entry.request.groups
            for name in group.resources
        )


@dataclass(frozen=True, slots=True)
class AllocationColumns:
    """Allocations of some consumers, one for each position of the arrays.

    Attributes:
        consumer: Uuids of consumers.
        provider_id, class_id: Provider and resource class.
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
        holds: Uuids of the existing holds.
        drawn: Amounts that consumers have drawn from holds that return, by consumer and hold.
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
        from_holds: Holds whose amounts count as free.
        rules: Rules between the consumers that are placed anew.
        limit: Most domains in the response.
        shows_all: Whether the response lists surviving domains too.
        explain: Whether the response explains why the first consumer has no candidate.
    """

    domains: tuple[str, ...] | None = None
    types: frozenset[str] | None = None
    from_holds: tuple[str, ...] = ()
    rules: tuple[PlanRule, ...] = ()
    limit: int = 100
    shows_all: bool = False
    explain: bool = False


@dataclass(frozen=True, slots=True)
class EvacuationGoal:
    """A goal: no allocations in some trees, or below some conditions.

    Attributes:
        providers: Uuids of providers in these trees.
        aggregate: Alternatively, the uuid of the aggregate that contains their roots.
        leave: Alternatively, whether it is at and below the providers with the condition `leave` (page 102).
    """

    providers: tuple[str, ...] = ()
    aggregate: str | None = None
    leave: bool = False


@dataclass(frozen=True, slots=True)
class CapacityGoal:
    """A number of further consumers of a request fit."""

    request: CandidateRequest
    amount: int


@dataclass(frozen=True, slots=True)
class MixGoal:
    """The most empty trees, if requested, and then the most room for a mix.

    Attributes:
        requests: Requests of the mix with their weights.
        empty_trees: Whether empty trees count, and count first.
    """

    requests: tuple[tuple[CandidateRequest, int], ...]
    empty_trees: bool = False


Goal = EvacuationGoal | CapacityGoal | MixGoal


@dataclass(frozen=True, slots=True)
class MovableConsumers:
    """The consumers that may be moved; all given members must apply.

    Attributes:
        consumer_types: Their types; None for all but holds.
        projects: Their projects; None for all.
        excepted: Uuids of consumers that stay.
    """

    consumer_types: frozenset[str] | None = None
    projects: frozenset[str] | None = None
    excepted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MovesCall:
    """A whole call.

    Attributes:
        goal: The goal.
        movable: Selects the consumers that may be moved.
        rules: Rules between consumers.
        max_moves: The most moves.
        both_at_once: Whether the new place is taken while the old one is still held.
        explain: Whether to explain why the first consumer that is left has no room.
    """

    goal: Goal
    movable: MovableConsumers = field(default_factory=MovableConsumers)
    rules: tuple[PlanRule, ...] = ()
    max_moves: int = 100
    both_at_once: bool = True
    explain: bool = False
