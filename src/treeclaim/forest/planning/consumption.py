# SPDX-License-Identifier: Apache-2.0
"""Consumption of assumed inventories, judged like that of a written batch (contract page 102, section 2)."""

from collections.abc import Iterator, Mapping

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.extension.batches.hierarchy import consumption_fault, is_at_or_above
from treeclaim.model.inventory import Consumes
from treeclaim.model.provider import InventoryRecord, ProviderRecord


def faults(
    forest: Forest, after: Mapping[int, ProviderRecord], rows: Rows, budget: Budget
) -> list[tuple[int, TreeclaimError]]:
    """Find what would not hold of the consumption that some providers have to do with.

    Args:
        forest: As it is before.
        after: These providers as they are to be, by id.
        rows: All rows of the trees that they are in before.
        budget: What it may cost.

    Returns:
        For each fault the id of one of the providers, and what is wrong.
    """
    known, names = dict(after), forest.catalogue.class_by_id
    errors = {}
    for record in (*after.values(), *_others(forest, after, rows, budget)):
        budget.check()
        parents = _parents_above(forest, after, record)
        for inventory in record.inventories:
            for entry in inventory.consumes:
                budget.check()
                consumed = known.get(entry.provider_id) or _record(forest, entry.provider_id)
                if consumed is None or {record.id, consumed.id}.isdisjoint(after):
                    continue
                known[consumed.id] = consumed
                stock = {each.class_id: each.consumes for each in consumed.inventories}
                error = consumption_fault(
                    (record.uuid, names[inventory.class_id].name),
                    Consumes(consumed.uuid, names[entry.class_id].name, entry.amount),
                    is_written=_is_written(forest, record, inventory),
                    is_missing=entry.class_id not in stock,
                    consumes_itself=bool(stock.get(entry.class_id)),
                    is_at_or_above=is_at_or_above(parents, consumed.id, record.id),
                )
                if error is not None:
                    at = record.id if record.id in after else consumed.id
                    key = record.id, inventory.class_id, consumed.uuid, entry.class_id
                    errors[key] = at, error
    return [errors[key] for key in sorted(errors)]


def _parents_above(
    forest: Forest, after: Mapping[int, ProviderRecord], record: ProviderRecord
) -> dict[int, int | None]:
    """Return the parents of a provider and of the providers above it, by id."""
    parents: dict[int, int | None] = {}
    above: ProviderRecord | None = record
    while above is not None:
        parents[above.id] = above.parent_id
        at = above.parent_id
        above = None if at is None else after.get(at) or _record(forest, at)
    return parents


def _record(forest: Forest, number: int) -> ProviderRecord | None:
    row = forest.row_of_id(number)
    return None if row is None else forest.record(row)


def _others(
    forest: Forest, after: Mapping[int, ProviderRecord], rows: Rows, budget: Budget
) -> Iterator[ProviderRecord]:
    """Yield the others of some rows, those that consume of the providers, as they are."""
    patterns = forest.holdings.patterns
    if not patterns.are_any:
        return
    concerned = rows[np.isin(forest.id.values[rows], list(after))]
    others: set[int] = set()
    for columns in forest.classes.values():
        _, indices = columns.indices_of(rows)
        for uses, some in patterns.among(columns.pattern.values[indices]):
            budget.check()
            consuming = columns.row.values[indices[some]]
            for use in uses:
                of_them = np.isin(consuming + use.offset, concerned)
                others.update(consuming[of_them].tolist())
    yield from (forest.record(row) for row in sorted(others - set(concerned.tolist())))


def _is_written(forest: Forest, record: ProviderRecord, inventory: InventoryRecord) -> bool:
    """Tell whether an inventory is to consume something else than it does."""
    row = forest.row_of_id(record.id)
    before = () if row is None else forest.record(row).inventories
    return all(
        written.class_id != inventory.class_id or written.consumes != inventory.consumes
        for written in before
    )
