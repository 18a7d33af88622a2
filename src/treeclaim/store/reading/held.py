# SPDX-License-Identifier: Apache-2.0
"""What all holds have together (contract page 100, section 5)."""

import sqlalchemy as sa

from treeclaim.model.extension.holds import HOLD_TYPE, Amounts
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    holds,
    resource_classes,
    resource_providers,
)

_HOLD_TYPES = sa.select(consumer_types.c.id).where(consumer_types.c.name == HOLD_TYPE)
_SUMS = (
    sa.select(
        allocations.c.resource_provider_id.label("provider_id"),
        allocations.c.resource_class_id.label("class_id"),
        sa.func.sum(allocations.c.used).label("used"),
    )
    .select_from(
        holds.join(consumers, consumers.c.uuid == holds.c.uuid).join(
            allocations, allocations.c.consumer_id == holds.c.uuid
        )
    )
    .where(consumers.c.consumer_type_id.in_(_HOLD_TYPES))
    .group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
)
_HELD_BY_IDS = CompiledStatement(_SUMS)
_BY_IDS = _SUMS.subquery()
_HELD_EVERYWHERE = CompiledStatement(
    sa.select(resource_providers.c.uuid, resource_classes.c.name, _BY_IDS.c.used)
    .select_from(_BY_IDS)
    .join(resource_providers, resource_providers.c.id == _BY_IDS.c.provider_id)
    .join(resource_classes, resource_classes.c.id == _BY_IDS.c.class_id)
)
"""One row for each inventory of which something is held, named after all is summed up; begins with the
terms of holds, so that it costs next to nothing where there are none."""


def held_by_ids(transaction: ReadTransaction) -> list[tuple[int, int, int]]:
    """Return the same by id of the provider and id of the class."""
    rows = transaction.rows(_HELD_BY_IDS)
    return [(provider_id, class_id, int(used)) for provider_id, class_id, used in rows]


def held_everywhere(transaction: ReadTransaction) -> Amounts:
    """Return what all holds have together, those too whose end has come as long as they hold."""
    found: dict[str, dict[str, int]] = {}
    for provider, name, used in transaction.rows(_HELD_EVERYWHERE):
        found.setdefault(provider, {})[name] = int(used)
    return found
