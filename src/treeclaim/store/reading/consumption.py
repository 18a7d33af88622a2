# SPDX-License-Identifier: Apache-2.0
"""What the inventories of a provider consume, as clients see it (contract page 102, section 2)."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from treeclaim.model.inventory import Consumes
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.tables import consumption, resource_classes, resource_providers

_CONSUMING = resource_providers.alias("consuming")
_CONSUMED = resource_providers.alias("consumed")
_CLASS = resource_classes.alias("consuming_class")
_CLASS_CONSUMED = resource_classes.alias("consumed_class")
_OF_PROVIDER = (
    sa.select(
        _CONSUMING.c.uuid,
        _CLASS.c.name.label("by_class"),
        _CONSUMED.c.uuid.label("provider"),
        _CLASS_CONSUMED.c.name.label("resource_class"),
        consumption.c.amount,
    )
    .select_from(consumption)
    .join(_CONSUMING, _CONSUMING.c.id == consumption.c.resource_provider_id)
    .join(_CLASS, _CLASS.c.id == consumption.c.resource_class_id)
    .join(_CONSUMED, _CONSUMED.c.id == consumption.c.consumed_provider_id)
    .join(_CLASS_CONSUMED, _CLASS_CONSUMED.c.id == consumption.c.consumed_class_id)
    .where(_CONSUMING.c.uuid == sa.bindparam("uuid"))
)


def of_provider(transaction: ReadTransaction, uuid: str) -> Mapping[str, Sequence[Consumes]]:
    """Return what each inventory of a provider consumes, by class, in the order of clients."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    for row in transaction.rows(_OF_PROVIDER, uuid=uuid):
        # Some collations match other spellings too.
        if row.uuid == uuid:
            entry = (row.provider, row.resource_class, row.amount)
            found.setdefault(row.by_class, []).append(entry)
    return {
        name: [Consumes(*entry) for entry in sorted(entries)] for name, entries in found.items()
    }
