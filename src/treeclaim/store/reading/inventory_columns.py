# SPDX-License-Identifier: Apache-2.0
"""Columns for reading an inventory with its usage."""

from typing import Any

import sqlalchemy as sa

from treeclaim.store.schema.tables import allocations, consumption, inventories

INVENTORY_COLUMNS = (
    inventories.c.total,
    inventories.c.reserved,
    inventories.c.min_unit,
    inventories.c.max_unit,
    inventories.c.step_size,
    inventories.c.allocation_ratio,
)
"""The columns of an `Inventory`, in the order of its attributes."""

_SUM = sa.func.coalesce(sa.func.sum(allocations.c.used), 0)


def _over_allocations(column: sa.ColumnElement[Any]) -> sa.Label[Any]:
    """Return a column for a query over inventories, over the allocations of each. An index covers it."""
    return (
        sa.select(column)
        .where(
            allocations.c.resource_provider_id == inventories.c.resource_provider_id,
            allocations.c.resource_class_id == inventories.c.resource_class_id,
        )
        .correlate(inventories)
        .scalar_subquery()
        .label("used")
    )


ALLOCATED = _over_allocations(_SUM)
"""The allocated units of each inventory."""

ALLOCATED_AND_COUNT = _over_allocations(
    sa.cast(_SUM, sa.String) + " " + sa.cast(sa.func.count(), sa.String)
)
"""The same, and by how many allocations, as one text with a space between: so they are read once."""

CONSUMES = sa.and_(
    allocations.c.resource_provider_id == consumption.c.resource_provider_id,
    allocations.c.resource_class_id == consumption.c.resource_class_id,
)
"""Joins allocations with what their inventories consume."""

_CONSUMED = (
    sa.select(sa.func.coalesce(sa.func.sum(allocations.c.used * consumption.c.amount), 0))
    .select_from(consumption.join(allocations, CONSUMES))
    .where(
        consumption.c.consumed_provider_id == inventories.c.resource_provider_id,
        consumption.c.consumed_class_id == inventories.c.resource_class_id,
    )
    .correlate(inventories)
    .scalar_subquery()
)
USED = (ALLOCATED.element + _CONSUMED).label("used")
"""The same with what is consumed of it (contract page 102, section 2): what is judged by."""
