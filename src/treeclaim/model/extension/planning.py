# SPDX-License-Identifier: Apache-2.0
"""Values of planning: assumptions, mixes, failures and moves (contract page 101)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from treeclaim.model.claim import Amounts
from treeclaim.model.extension.batch import BatchEntry
from treeclaim.model.request import CandidateRequest, ValueObject

MIX_NAME = "[A-Za-z0-9_.-]{1,64}"
"""Pattern of the names of mixes."""

_IS_MIX_NAME = re.compile(MIX_NAME)

MOST_REQUESTS = 64
"""Most requests of a mix."""

MOST_WEIGHT = 1_000_000


def is_mix_name(text: str) -> bool:
    """Return whether a name is valid for a mix."""
    return _IS_MIX_NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class MixRequest:
    """A request of a mix, without order, limit and holds; the relative weight is 1 to `MOST_WEIGHT`."""

    request: CandidateRequest
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Mix(ValueObject):
    """The requests that a cloud expects: 1 to `MOST_REQUESTS`, by name."""

    name: str
    requests: Mapping[str, MixRequest]
    _value: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    @property
    def classes(self) -> frozenset[str]:
        """Return the names of all requested resource classes."""
        return frozenset(
            name
            for mix_entry in self.requests.values()
            for group in mix_entry.request.groups
            for name in group.resources
        )


@dataclass(frozen=True, slots=True)
class AllocationColumns:
    """Allocations of consumers; `used` is in units."""

    consumer: Sequence[str]
    provider_id: Sequence[int]
    class_id: Sequence[int]
    used: Sequence[int]


@dataclass(frozen=True, slots=True)
class OwnerColumns:
    """Records of consumers; a consumer without a type has the type None."""

    uuid: Sequence[str]
    project: Sequence[str]
    type: Sequence[str | None]
    generation: Sequence[int]


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """Stored requests of consumers, as JSON lists of queries."""

    consumer: Sequence[str]
    request: Sequence[str]


@dataclass(frozen=True, slots=True)
class HoldSnapshot:
    """The holds of the cloud.

    Attributes:
        holds: UUIDs of all holds.
        drawn: Amounts that consumers have drawn from holds that get them back, by consumer and hold.
    """

    holds: frozenset[str]
    drawn: Mapping[str, Mapping[str, Amounts]]


Document = dict[str, Any]
"""A JSON response."""

ConsumerSnapshotPart = AllocationColumns | OwnerColumns | RequestColumns | HoldSnapshot
"""A part of a consistent snapshot of consumers."""


@dataclass(frozen=True, slots=True)
class AssumptionSet:
    """The assumptions of a call (section 1), in the order in which they are applied.

    Attributes:
        release: UUIDs of consumers whose allocations are removed.
        without: UUIDs of providers whose trees are removed.
        providers: Changed providers.
        place: Requests of new consumers, and the number of consumers of each.
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
"""The assumptions of a call without `given`."""


@dataclass(frozen=True, slots=True)
class PlanRule:
    """A rule between consumers that are placed again or moved (section 5).

    Attributes:
        domains: UUIDs of aggregates; None if each tree is a domain.
        consumers: UUIDs of the consumers that the rule applies to, and counts.
        max_per_domain: Number of other consumers in a domain from which no consumer is moved into it.
    """

    domains: tuple[str, ...] | None
    consumers: frozenset[str]
    max_per_domain: int


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures to simulate, and the contents of the response (section 4).

    Attributes:
        domains: UUIDs of aggregates; None if each tree is a domain.
        types: Types of the consumers that are placed again; None for all.
        from_holds: UUIDs of holds; their amounts count as free.
        rules: Rules between the consumers that are placed again.
        limit: Most domains in the response.
        shows_all: Whether the response contains surviving domains too.
        explain: Whether to explain why the first unplaced consumer has no candidate.
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
    """The goal that no allocations remain in a set of trees, or at providers with conditions.

    Attributes:
        providers: UUIDs of providers in the trees.
        aggregate: Alternatively, the UUID of the aggregate of their roots.
        leave: Alternatively, whether the goal covers the providers with a condition `leave` and their descendants
            (page 102).
    """

    providers: tuple[str, ...] = ()
    aggregate: str | None = None
    leave: bool = False


@dataclass(frozen=True, slots=True)
class CapacityGoal:
    """The goal that `amount` further consumers of a request fit."""

    request: CandidateRequest
    amount: int


@dataclass(frozen=True, slots=True)
class MixGoal:
    """The goal to maximize the number of empty trees, if requested, and then the count of a mix of weighted requests."""

    requests: tuple[tuple[CandidateRequest, int], ...]
    empty_trees: bool = False


Goal = EvacuationGoal | CapacityGoal | MixGoal


@dataclass(frozen=True, slots=True)
class MovableConsumers:
    """A filter of the consumers that may be moved; None stands for all projects, and all types except holds."""

    consumer_types: frozenset[str] | None = None
    projects: frozenset[str] | None = None
    excepted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MovesCall:
    """A call that plans moves.

    Attributes:
        both_at_once: Whether a moving consumer occupies its old and its new place together.
        explain: Whether to explain the first consumer that remains.
    """

    goal: Goal
    movable: MovableConsumers = field(default_factory=MovableConsumers)
    rules: tuple[PlanRule, ...] = ()
    max_moves: int = 100
    both_at_once: bool = True
    explain: bool = False
