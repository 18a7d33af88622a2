# SPDX-License-Identifier: Apache-2.0
"""Applies a batch of entries in one transaction: all, or none (contract page 99, section 8)."""

from collections.abc import Callable, Sequence

import sqlalchemy as sa

from treeclaim.model.extension.batches import targets
from treeclaim.model.extension.batches.batch import (
    BatchEntry,
    BatchForbiddenError,
    BatchResult,
    EntryOutcome,
    Omission,
    Problem,
)
from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction
from treeclaim.store.operations.providers import consumption
from treeclaim.store.operations.providers.inventories import InventoryWriter
from treeclaim.store.operations.providers.part_tables import (
    AggregateWriter,
    AttributeWriter,
    TraitWriter,
)
from treeclaim.store.operations.providers.part_writer import (
    PartWriter,
    Target,
    WriteRules,
    inventories_in,
    raise_all,
    raise_changed,
)
from treeclaim.store.operations.providers.placing import judge_places, write_places
from treeclaim.store.schema.tables import resource_providers

WRITERS: Sequence[type[PartWriter]] = (
    InventoryWriter,
    TraitWriter,
    AggregateWriter,
    AttributeWriter,
)
"""The writer of each part, in the order in which parts are written."""

CREATE_RULE = "placement:resource_providers:create"
UPDATE_RULE = "placement:resource_providers:update"

_RULES = WriteRules()
_NAMED = sa.select(resource_providers.c.uuid, resource_providers.c.name).where(
    resource_providers.c.name.in_(sa.bindparam("names", expanding=True))
)


def apply(
    transaction: WriteTransaction,
    entries: Sequence[BatchEntry],
    is_allowed: Callable[[str], bool],
    *,
    create_names: bool,
) -> list[EntryOutcome]:
    """Create and change providers; return the outcome of each entry.

    Args:
        transaction: It does nothing else.
        entries: The wanted states.
        is_allowed: Whether the caller may do what a policy rule guards.
        create_names: Whether missing custom traits and classes are created.

    Raises:
        BatchRefusedError: with all problems.
        BatchForbiddenError: if a policy rule forbids an entry.
    """
    problems: list[Problem] = []
    every_target = _find_targets(transaction, entries, problems)
    _require_allowed(every_target, is_allowed)
    writers = [writer(transaction, every_target, _RULES) for writer in WRITERS]
    if create_names:
        for writer in writers:
            writer.create_names()
    for writer in writers:
        writer.look_up(problems)
    places = judge_places(transaction, every_target, _RULES, problems)
    if not problems:
        write_places(transaction, every_target, _RULES, places)
    for writer in writers:
        writer.judge(problems)
    raise_all(problems)
    for writer in writers:
        writer.write()
    for writer in writers:
        writer.check(problems)
    raise_all(problems)
    raise_changed(transaction, every_target, _RULES)
    return [_outcome(target) for target in every_target]


def _find_targets(
    transaction: WriteTransaction, entries: Sequence[BatchEntry], problems: list[Problem]
) -> list[Target]:
    """Find and lock the providers of entries; add a problem for each faulty entry.

    Returns:
        The targets of the other entries.
    """
    names = {entry.name for entry in entries if entry.name is not None}
    holders = _find_holders(transaction, sorted(names))
    uuids = {uuid for uuid in targets.uuids_of(entries, holders) if uuid is not None}
    # In one statement: the second of two might wait for a row before those of the first.
    rows = consumption.lock_all(transaction, uuids, list(inventories_in(entries)))
    return targets.sound_targets(entries, holders, rows, problems)


def _find_holders(transaction: ReadTransaction, names: Sequence[str]) -> dict[str, str]:
    """Return the UUIDs of the providers with these names, by name."""
    return {row.name: row.uuid for row in transaction.rows_in_chunks(_NAMED, names=names)}


def _require_allowed(every_target: Sequence[Target], is_allowed: Callable[[str], bool]) -> None:
    if any(target.is_new for target in every_target) and not is_allowed(CREATE_RULE):
        raise BatchForbiddenError(CREATE_RULE)
    is_update = any(
        not target.is_new and (target.is_renamed or not isinstance(target.entry.parent, Omission))
        for target in every_target
    )
    if is_update and not is_allowed(UPDATE_RULE):
        raise BatchForbiddenError(UPDATE_RULE)


def _outcome(target: Target) -> EntryOutcome:
    if target.is_new:
        result = BatchResult.CREATED
    else:
        result = BatchResult.CHANGED if target.changed else BatchResult.UNCHANGED
    return EntryOutcome(target.uuid, target.row.generation, result, tuple(target.changed))
