# SPDX-License-Identifier: Apache-2.0
"""Which provider each entry of a batch is about, locked where it exists."""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from treeclaim.model.extension.batches import targets
from treeclaim.model.extension.batches.batch import BatchEntry, Problem
from treeclaim.model.inventory import Inventory
from treeclaim.model.parts import INVENTORIES
from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, chunks
from treeclaim.store.operations.locks.provider_rows import LockedProvider
from treeclaim.store.operations.providers import consumption
from treeclaim.store.schema.tables import resource_providers

_NAMED = sa.select(resource_providers.c.uuid, resource_providers.c.name).where(
    resource_providers.c.name.in_(sa.bindparam("names", expanding=True))
)

Target = targets.Target[LockedProvider]
"""An entry and the provider that it is about."""


def targets_of(
    transaction: WriteTransaction, entries: Sequence[BatchEntry], problems: list[Problem]
) -> list[Target]:
    """Find and lock the providers of all entries; record every fault.

    Returns:
        Those without a fault.
    """
    holders = _holders(transaction, [entry.name for entry in entries if entry.name is not None])
    uuids = {uuid for uuid in targets.uuids_of(entries, holders) if uuid is not None}
    # All in one statement: of two, the second might wait for what comes before the first.
    rows = consumption.lock_all(transaction, uuids, list(given_inventories(entries)))
    return targets.sound_targets(entries, holders, rows, problems)


def given_inventories(entries: Sequence[BatchEntry]) -> Iterator[Inventory]:
    """Yield the inventories that entries have."""
    for entry in entries:
        yield from entry.values.get(INVENTORIES.name, {}).values()


def _holders(transaction: ReadTransaction, names: Sequence[str]) -> dict[str, str]:
    """Return the uuids of the providers that have some names, by name."""
    return {
        row.name: row.uuid
        for chunk in chunks(sorted(set(names)))
        for row in transaction.rows(_NAMED, names=chunk)
    }
