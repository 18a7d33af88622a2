# SPDX-License-Identifier: Apache-2.0
"""Inventories: their columns, usage, and consumption of each other."""

from collections.abc import Mapping, Sequence

from treeclaim.model.provider import Consumption
from treeclaim.store.database.transactions import ReadTransaction

INVENTORY_COLUMNS = "total, reserved, min_unit, max_unit, step_size, allocation_ratio"
"""Columns of an `Inventory`, in the order of its attributes."""

USED = """
(
    SELECT COALESCE(SUM(a.used), 0) FROM allocations a
    WHERE a.resource_provider_id = inventories.resource_provider_id
    AND a.resource_class_id = inventories.resource_class_id
) + (
    SELECT COALESCE(SUM(a.used * c.amount), 0) FROM treeclaim_consumption c
    JOIN allocations a ON a.resource_provider_id = c.resource_provider_id
    AND a.resource_class_id = c.resource_class_id
    WHERE c.consumed_provider_id = inventories.resource_provider_id
    AND c.consumed_class_id = inventories.resource_class_id
) AS used
"""
"""Used amount of an inventory in a query over inventories, with consumption (contract page 102, section 2).
Indexes cover it."""

CONSUMPTION_BY_NAMES = """
SELECT consuming.uuid AS by_uuid, consuming_class.name AS by_class, consumed.uuid AS provider,
    consumed_class.name AS resource_class, consuming.parent_provider_id AS parent_id, c.*{further}
FROM treeclaim_consumption c
JOIN resource_providers consuming ON consuming.id = c.resource_provider_id
JOIN resource_classes consuming_class ON consuming_class.id = c.resource_class_id
JOIN resource_providers consumed ON consumed.id = c.consumed_provider_id
JOIN resource_classes consumed_class ON consumed_class.id = c.consumed_class_id
"""
"""Selects consumption with the names of both inventories, and the parent of the consuming provider."""

_OF_PROVIDER = f"{CONSUMPTION_BY_NAMES} WHERE consuming.uuid = :uuid".format(further="")


def load_consumed_inventories(
    transaction: ReadTransaction, uuid: str
) -> Mapping[str, Sequence[Consumption]]:
    """Return the consumption by each inventory of a provider, by class, in the order of the response."""
    entries_by_class: dict[str, list[tuple[str, str, int]]] = {}
    for row in transaction.rows(_OF_PROVIDER, uuid=uuid):
        # Some collations also match other spellings.
        if row.by_uuid == uuid:
            entry = (row.provider, row.resource_class, row.amount)
            entries_by_class.setdefault(row.by_class, []).append(entry)
    return {
        name: [Consumption(*entry) for entry in sorted(entries)]
        for name, entries in entries_by_class.items()
    }
