# SPDX-License-Identifier: Apache-2.0
"""What all holds have together (contract page 100, section 5)."""

import sqlalchemy as sa

from treeclaim.model.extension.holds import Amounts
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holds import EXISTING
from treeclaim.store.schema.tables import allocations, holds, resource_classes, resource_providers

_HELD_EVERYWHERE = CompiledStatement(
    sa.select(resource_providers.c.uuid, resource_classes.c.name, sa.func.sum(allocations.c.used))
    .select_from(
        EXISTING.join(allocations, allocations.c.consumer_id == holds.c.uuid)
        .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    )
    .group_by(resource_providers.c.uuid, resource_classes.c.name)
)
"""One row for each inventory of which something is held; begins with the terms of holds, so that it
costs next to nothing where there are none."""


def held_everywhere(transaction: ReadTransaction) -> Amounts:
    """Return what all holds have together, those too whose end has come as long as they hold."""
    found: dict[str, dict[str, int]] = {}
    for provider, name, used in transaction.rows(_HELD_EVERYWHERE):
        found.setdefault(provider, {})[name] = int(used)
    return found
