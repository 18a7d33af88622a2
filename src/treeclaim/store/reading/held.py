# SPDX-License-Identifier: Apache-2.0
"""What all holds have together (contract page 100, section 5)."""

import sqlalchemy as sa

from treeclaim.model.extension.holds import HOLD_TYPE
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    holds,
)

_HOLD_TYPES = sa.select(consumer_types.c.id).where(consumer_types.c.name == HOLD_TYPE)
# By sums, which no index has: by the columns themselves SQLite would read all allocations in their order,
# to save itself the sorting of what holds have.
_NOTHING = sa.literal_column("0", sa.Integer)
_INVENTORY = (
    allocations.c.resource_provider_id + _NOTHING,
    allocations.c.resource_class_id + _NOTHING,
)
_SUMS = (
    sa.select(
        *_INVENTORY,
        sa.func.sum(allocations.c.used),
    )
    .select_from(
        holds.join(consumers, consumers.c.uuid == holds.c.uuid).join(
            allocations, allocations.c.consumer_id == holds.c.uuid
        )
    )
    .where(consumers.c.consumer_type_id.in_(_HOLD_TYPES))
    .group_by(*_INVENTORY)
)
_HELD_EVERYWHERE = CompiledStatement(_SUMS)
"""One row for each inventory of which something is held; begins with the terms of holds, so that it
costs next to nothing where there are none."""


def held_everywhere(transaction: ReadTransaction) -> list[tuple[int, int, int]]:
    """Return what all holds have together, those too whose end has come as long as they hold.

    Returns:
        Id of a provider, id of a class, and how much, each of the two once.
    """
    rows = transaction.rows(_HELD_EVERYWHERE)
    return [(provider_id, class_id, int(used)) for provider_id, class_id, used in rows]
