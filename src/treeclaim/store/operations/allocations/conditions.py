# SPDX-License-Identifier: Apache-2.0
"""Refuses claims by conditions of providers, and begins conditions (contract page 102, section 3).

A claim locks its providers, then reads the conditions of these and of their ancestors. A write of a condition
locks its provider and all descendants (`providers/conditions.py`). A claim that commits after the condition has
therefore read it. An UPDATE of rows with `began = false` begins a condition at its first use: of two concurrent
claims, the second one updates no row, retries, and reads the begun condition.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from treeclaim.model.extension.errors import ConditionedError
from treeclaim.model.parts import Part
from treeclaim.model.provider import Condition
from treeclaim.store.database.systems import read_clock
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.allocations.ledger import NewAllocation
from treeclaim.store.operations.allocations.lookup import CurrentAllocations, Usage
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.locks.consumed import ConsumedAmounts, add_consumed
from treeclaim.store.reading.providers.parts import read_condition

# UNION without ALL: in old data with a cycle, the recursion ends.
_CONDITIONS = """
WITH RECURSIVE up (below, above) AS (
    SELECT id, id FROM resource_providers WHERE id IN :ids
    UNION SELECT up.below, p.parent_provider_id FROM up
    JOIN resource_providers p ON p.id = up.above WHERE p.parent_provider_id IS NOT NULL
)
SELECT up.below, p.uuid, c.* FROM up
JOIN treeclaim_conditions c ON c.resource_provider_id = up.above
JOIN resource_providers p ON p.id = up.above
ORDER BY c.resource_provider_id, c.name
"""
_BEGIN = """
UPDATE treeclaim_conditions SET began = true
WHERE resource_provider_id = :provider_id AND name = :key AND on_use = true AND began = false
"""


@dataclass(slots=True, eq=False)
class _LockedCondition:
    provider_id: int
    provider_uuid: str
    condition: Condition
    claimed_ids: set[int]
    """Ids of the claimed providers at or below its provider."""
    is_begun: bool = False
    """Whether a request of this transaction begins it."""


class ConditionBook:
    """The conditions that concern the claims of a transaction."""

    def __init__(self, transaction: WriteTransaction) -> None:
        self._transaction = transaction
        self._conditions: list[_LockedCondition] = []

    def read(self, provider_ids: Iterable[int]) -> None:
        """Read the conditions of locked providers and their ancestors."""
        condition_by_key: dict[tuple[int, str], _LockedCondition] = {}
        now = read_clock(self._transaction.connection)
        for row in self._transaction.rows_in_chunks(_CONDITIONS, ids=sorted(set(provider_ids))):
            condition = read_condition(row)
            if not condition.has_ended(now):
                locked_condition = _LockedCondition(
                    row.resource_provider_id, row.uuid, condition, set()
                )
                key = locked_condition.provider_id, condition.key
                condition_by_key.setdefault(key, locked_condition).claimed_ids.add(row.below)
        self._conditions = [condition_by_key[key] for key in sorted(condition_by_key)]

    def judge(
        self,
        request: ClaimRequest,
        new_allocations: Sequence[NewAllocation],
        current_allocations: CurrentAllocations,
        consumption: ConsumedAmounts,
    ) -> list[_LockedCondition]:
        """Return the conditions that a request begins if it is written.

        Raises:
            ConditionedError: if the usage of its consumers together increases under a begun condition.
        """
        begun_conditions = []
        for locked_condition in self._conditions:
            has_begun = locked_condition.condition.began or locked_condition.is_begun
            tolerant_uuids = {
                claim.consumer_uuid
                for claim in request.claims
                if locked_condition.condition.key in claim.tolerates
            }
            excluded_uuids = tolerant_uuids if has_begun else set[str]()
            change = _sum_change(request, new_allocations, current_allocations, excluded_uuids)
            if _has_increase(add_consumed(change, consumption), locked_condition.claimed_ids):
                if has_begun:
                    raise ConditionedError(
                        locked_condition.provider_uuid,
                        locked_condition.condition.key,
                        locked_condition.condition.reason,
                    )
                begun_conditions.append(locked_condition)
        return begun_conditions

    def accept(self, begun_conditions: Iterable[_LockedCondition]) -> None:
        """Mark conditions as begun by an accepted request."""
        for locked_condition in begun_conditions:
            locked_condition.is_begun = True

    def write(self) -> None:
        """Write the begun conditions; retry the transaction if another one has begun or deleted a condition."""
        for locked_condition in self._conditions:
            if locked_condition.is_begun:
                key = locked_condition.condition.key
                self._transaction.change(
                    _BEGIN, rows=1, provider_id=locked_condition.provider_id, key=key
                )
                self._transaction.touch_providers([locked_condition.provider_id], Part.CONDITIONS)


def _sum_change(
    request: ClaimRequest,
    new_allocations: Sequence[NewAllocation],
    current_allocations: CurrentAllocations,
    excluded_uuids: set[str],
) -> Usage:
    """Return the change of usage by the consumers of a request, except `excluded_uuids`."""
    change: Usage = Counter()
    for allocation in new_allocations:
        if allocation.consumer_uuid not in excluded_uuids:
            change[allocation.key] += allocation.used
    change.subtract(
        current_allocations.sum_usage(
            uuid for uuid in request.consumer_uuids if uuid not in excluded_uuids
        )
    )
    return change


def _has_increase(change: Usage, provider_ids: set[int]) -> bool:
    """Return whether the usage of a class increases at these providers together."""
    by_class: defaultdict[int, int] = defaultdict(int)
    for (provider_id, class_id), amount in change.items():
        if provider_id in provider_ids:
            by_class[class_id] += amount
    return any(amount > 0 for amount in by_class.values())
