# SPDX-License-Identifier: Apache-2.0
"""Values of an audit: kinds of findings, findings, repairs (contract page 99, section 5)."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class FindingKind(StrEnum):
    """The kinds of inconsistency in stored rows."""

    OVER_CAPACITY = "over_capacity"
    """More is used of an inventory than there is."""
    AGAINST_UNITS = "against_units"
    """An allocation that min_unit, max_unit or step_size no longer allow."""
    WITHOUT_INVENTORY = "without_inventory"
    """An allocation of a class that the provider has not."""
    WITHOUT_PROVIDER = "without_provider"
    """Rows of a provider that does not exist."""
    WITHOUT_CONSUMER = "without_consumer"
    """Allocations whose consumer has no record."""
    EMPTY_CONSUMER = "empty_consumer"
    """A record of a consumer that holds nothing."""
    BROKEN_ROOT = "broken_root"
    """A root that is not the top of the parents."""
    BROKEN_PARENT = "broken_parent"
    """A parent that does not exist, or a circle of parents."""
    IN_MANY_TREES = "in_many_trees"
    """A consumer with several trees (page 98, section 1): an unfinished move."""
    SAME_HOST = "same_host"
    """Roots whose names differ only in case, or in a domain behind one."""
    UNUSED_AGGREGATE = "unused_aggregate"
    UNUSED_TRAIT = "unused_trait"
    UNUSED_CLASS = "unused_class"
    """Nothing refers to it (of traits and classes: custom ones)."""
    EMPTY_TREE = "empty_tree"
    """A tree without any inventory."""
    EXPIRED_HOLD = "expired_hold"
    """A hold that still exists a minute after its end (page 100, section 5)."""
    BROKEN_HOLD = "broken_hold"
    """Terms, or draws, of what is not a hold."""
    BROKEN_DRAW = "broken_draw"
    """More drawn than the consumer has."""
    MUST_LEAVE = "must_leave"
    """A consumer where a condition says that all are to leave (page 102, section 3)."""
    ORPHANED = "orphaned"
    """A consumer that, by a list, does not live any more."""


REPAIRABLE = (
    FindingKind.WITHOUT_PROVIDER,
    FindingKind.WITHOUT_CONSUMER,
    FindingKind.EMPTY_CONSUMER,
    FindingKind.BROKEN_ROOT,
    FindingKind.UNUSED_AGGREGATE,
    FindingKind.EXPIRED_HOLD,
    FindingKind.BROKEN_HOLD,
    FindingKind.BROKEN_DRAW,
    FindingKind.ORPHANED,
)
"""Kinds that can be repaired without a guess."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of one kind.

    Attributes:
        count: How many there are.
        items: The first of them, as clients see them.
    """

    count: int
    items: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, items: Sequence[Mapping[str, Any]], limit: int) -> "Findings":
        """Keep the first of all items."""
        return cls(len(items), items[:limit])


@dataclass(frozen=True, slots=True)
class Living:
    """The consumers that exist outside, such as Nova's instances.

    Attributes:
        uuids: Uuids, lower-case and dashed, by type; consumers of other types are not judged.
        older_than: Seconds; consumers that were given something within them are not judged.
    """

    uuids: Mapping[str, AbstractSet[str]]
    older_than: float


class RepairResult(StrEnum):
    """The result of a repair."""

    DONE = "done"
    GONE = "gone"
    """The finding does not hold any more."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """The outcome of one repair.

    Attributes:
        result: What became of it.
        detail: Why it was refused.
    """

    result: RepairResult
    detail: str | None = None
