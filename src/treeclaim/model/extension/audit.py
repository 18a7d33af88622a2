# SPDX-License-Identifier: Apache-2.0
"""Findings of an audit, and repairs (contract page 99, section 5)."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class FindingKind(StrEnum):
    """Kinds of inconsistencies in the database; `meaning` describes the findings of a kind."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        """Create a text member with a meaning."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    OVER_CAPACITY = "over_capacity", "more is used than exists"
    AGAINST_UNITS = (
        "against_units",
        "allocations that min_unit, max_unit or step_size no longer allow",
    )
    WITHOUT_INVENTORY = (
        "without_inventory",
        "allocations of classes that the provider does not have",
    )
    WITHOUT_PROVIDER = "without_provider", "rows of providers that do not exist"
    WITHOUT_CONSUMER = "without_consumer", "consumers without a record"
    EMPTY_CONSUMER = "empty_consumer", "records of consumers that hold nothing"
    BROKEN_ROOT = "broken_root", "roots that are not the top of the parents"
    BROKEN_PARENT = "broken_parent", "parents that do not exist, or circles"
    IN_MANY_TREES = "in_many_trees", "consumers in several trees: unfinished moves"
    SAME_HOST = "same_host", "hosts that exist twice under similar names"
    UNUSED_AGGREGATE = "unused_aggregate", "aggregates without members"
    UNUSED_TRAIT = "unused_trait", "custom traits that no provider has"
    UNUSED_CLASS = "unused_class", "custom classes that no provider has"
    EMPTY_TREE = "empty_tree", "trees without inventory"
    EXPIRED_HOLD = "expired_hold", "holds that still exist after their end"
    BROKEN_HOLD = "broken_hold", "terms or draws of a consumer that is not a hold"
    BROKEN_DRAW = "broken_draw", "more drawn from holds than the consumer has"
    MUST_LEAVE = "must_leave", "consumers at providers with a condition whose effect is leave"
    ORPHANED = "orphaned", "consumers that no longer exist in the cloud"


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
"""Kinds with exactly one possible repair."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of one kind: their number, and the JSON objects of the first ones."""

    count: int
    items: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, items: Sequence[Mapping[str, Any]], limit: int) -> "Findings":
        """Count all items, and keep the first `limit`."""
        return cls(len(items), items[:limit])


@dataclass(frozen=True, slots=True)
class LivingConsumers:
    """The consumers that exist in the cloud, such as Nova's instances.

    Attributes:
        uuids: Lower-case dashed uuids by type; consumers of other types are not checked.
        older_than: Seconds since the last claim within which a consumer is not checked.
    """

    uuids: Mapping[str, AbstractSet[str]]
    older_than: float


class RepairResult(StrEnum):
    """The result of a repair."""

    DONE = "done"
    GONE = "gone"
    """The inconsistency no longer exists."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """The result of one repair, and the reason of a refusal."""

    result: RepairResult
    detail: str | None = None
