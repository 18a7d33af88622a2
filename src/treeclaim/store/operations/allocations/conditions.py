# SPDX-License-Identifier: Apache-2.0
"""Refuses claims by conditions of providers, and lets conditions begin (contract page 102, section 3).

A claim has locked the providers that it names when it reads the conditions of these and of all above
them. A write of a condition locks all providers at and below its own (`providers/conditions.py`).
So a claim that ends after the condition is committed has read it. Conditions that wait for their first
use are begun by an update of those that have not begun: of two claims that find such a condition, the second
runs again, and finds that it has begun.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from treeclaim.model.extension.conditions import Condition
from treeclaim.model.extension.errors import ConditionedError
from treeclaim.model.parts import Part
from treeclaim.store.database.compiled import CompiledStatement, bind_list
from treeclaim.store.database.systems import read_clock
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.allocations.capacity import NewAllocation
from treeclaim.store.operations.allocations.lookup import CurrentAllocations, Usage
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.locks.consumed import Entries, with_consumed
from treeclaim.store.reading.providers.parts import condition_of
from treeclaim.store.schema.tables import conditions, resource_providers

_THEMSELVES = (
    sa.select(resource_providers.c.id.label("below"), resource_providers.c.id.label("above"))
    .where(resource_providers.c.id.in_(bind_list("ids")))
    .cte("up", recursive=True)
)
# Of old data with a circle, each provider is found once.
_UP = _THEMSELVES.union(
    sa.select(_THEMSELVES.c.below, resource_providers.c.parent_provider_id)
    .join(resource_providers, resource_providers.c.id == _THEMSELVES.c.above)
    .where(resource_providers.c.parent_provider_id.is_not(None))
)
_CONDITIONS = CompiledStatement(
    sa.select(_UP.c.below, resource_providers.c.uuid, *conditions.c)
    .join(conditions, conditions.c.resource_provider_id == _UP.c.above)
    .join(resource_providers, resource_providers.c.id == _UP.c.above)
    .order_by(conditions.c.resource_provider_id, conditions.c.name)
)
_BEGIN = CompiledStatement(
    sa.update(conditions)
    .where(
        conditions.c.resource_provider_id == sa.bindparam("provider_id"),
        conditions.c.name == sa.bindparam("key"),
        conditions.c.on_use == sa.true(),
        conditions.c.began == sa.false(),
    )
    .values(began=sa.true())
)


@dataclass(slots=True, eq=False)
class _LockedCondition:
    """A condition, and the providers of the claims at or below its own (`below`).

    `is_begun` tells whether a write of the transaction has begun it.
    """

    provider_id: int
    provider_uuid: str
    condition: Condition
    below: set[int]
    is_begun: bool = False


class ConditionBook:
    """The conditions that concern the claims of a transaction."""

    def __init__(self, transaction: WriteTransaction, *, is_one_write: bool) -> None:
        """Begin with none; `is_one_write` says that all requests are parts of one write."""
        self._transaction = transaction
        self._is_one_write = is_one_write
        self._known: list[_LockedCondition] = []

    def read(self, provider_ids: Iterable[int]) -> None:
        """Read the conditions of some providers, which are locked if claims name them, and above them."""
        condition_by_key: dict[tuple[int, str], _LockedCondition] = {}
        now = read_clock(self._transaction.connection)
        for row in self._transaction.rows_in_chunks(_CONDITIONS, ids=sorted(set(provider_ids))):
            condition = condition_of(row)
            if not condition.has_ended(now):
                locked_condition = _LockedCondition(
                    row.resource_provider_id, row.uuid, condition, set()
                )
                key = locked_condition.provider_id, condition.key
                condition_by_key.setdefault(key, locked_condition).below.add(row.below)
        self._known = [condition_by_key[key] for key in sorted(condition_by_key)]

    def judge(
        self,
        request: ClaimRequest,
        new: Sequence[NewAllocation],
        current: CurrentAllocations,
        consumption: Entries,
    ) -> list[_LockedCondition]:
        """Judge a request; return the conditions that begin with it, if it is written.

        Raises:
            ConditionedError: if its consumers, together, use more than before where a condition counts.
        """
        begins = []
        for locked_condition in self._known:
            has_begun = locked_condition.condition.began or (
                locked_condition.is_begun and not self._is_one_write
            )
            tolerant = {
                claim.consumer_uuid
                for claim in request.claims
                if locked_condition.condition.key in claim.tolerates
            }
            leaving_out = tolerant if has_begun else set[str]()
            change = _change(request, new, current, leaving_out)
            if _is_more(with_consumed(change, consumption), locked_condition.below):
                if has_begun:
                    raise ConditionedError(
                        locked_condition.provider_uuid,
                        locked_condition.condition.key,
                        locked_condition.condition.reason,
                    )
                begins.append(locked_condition)
        return begins

    def accept(self, begins: Iterable[_LockedCondition]) -> None:
        """Count conditions as begun: a request is accepted that uses more there."""
        for locked_condition in begins:
            locked_condition.is_begun = True

    def write(self) -> None:
        """Write which conditions have begun.

        Raises:
            RetryTransactionError: if another transaction has begun one, or deleted it.
        """
        for locked_condition in self._known:
            if locked_condition.is_begun:
                key = locked_condition.condition.key
                self._transaction.change(
                    _BEGIN, rows=1, provider_id=locked_condition.provider_id, key=key
                )
                self._transaction.touch_providers([locked_condition.provider_id], Part.CONDITIONS)


def _change(
    request: ClaimRequest,
    new: Sequence[NewAllocation],
    current: CurrentAllocations,
    leaving_out: set[str],
) -> Usage:
    """Return how much more the consumers of a request will have, together, but for some of them."""
    change: Usage = Counter()
    for allocation in new:
        if allocation.consumer_uuid not in leaving_out:
            change[allocation.key] += allocation.used
    change.subtract(
        current.usage_of(uuid for uuid in request.consumer_uuids if uuid not in leaving_out)
    )
    return change


def _is_more(change: Usage, below: set[int]) -> bool:
    """Return whether more of a class is used at some providers, together."""
    by_class: defaultdict[int, int] = defaultdict(int)
    for (provider_id, class_id), amount in change.items():
        if provider_id in below:
            by_class[class_id] += amount
    return any(amount > 0 for amount in by_class.values())
