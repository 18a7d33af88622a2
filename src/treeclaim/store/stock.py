# SPDX-License-Identifier: Apache-2.0
"""What is used of an inventory, asked together with the inventory."""

import sqlalchemy as sa

from treeclaim.store.tables import allocations, inventories

USED = (
    sa.select(sa.func.coalesce(sa.func.sum(allocations.c.used), 0))
    .where(
        allocations.c.resource_provider_id == inventories.c.resource_provider_id,
        allocations.c.resource_class_id == inventories.c.resource_class_id,
    )
    .correlate(inventories)
    .scalar_subquery()
    .label("used")
)
"""A column for a query over inventories: the units claimed of each. An index holds all it reads."""
