# SPDX-License-Identifier: Apache-2.0
"""Writes entries to their providers, all or none (contract page 99, section 8).

A URL of one provider is a batch of one entry with other `WriteRules`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from treeclaim.model.claim import Omission
from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.model.extension.batch import (
    BatchEntry,
    BatchForbiddenError,
    BatchResult,
    EntryFault,
    EntryOutcome,
    find_sound_targets,
    find_uuids,
)
from treeclaim.model.parts import ProviderPart
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.locks.provider_rows import require_generation
from treeclaim.store.operations.providers import consumption
from treeclaim.store.operations.providers.inventories import InventoryWriter
from treeclaim.store.operations.providers.part_writer import (
    AggregateWriter,
    AttributeWriter,
    PartWriter,
    Target,
    TraitWriter,
    WriteRules,
    list_inventories,
    raise_all,
    raise_first,
    record_changes,
)
from treeclaim.store.operations.providers.tree_writer import TreeWriter

WRITERS: Sequence[type[PartWriter]] = (
    InventoryWriter,
    TraitWriter,
    AggregateWriter,
    AttributeWriter,
)
"""The writer of each part, in the order of writes."""

CREATE_RULE = "placement:resource_providers:create"
UPDATE_RULE = "placement:resource_providers:update"

_RULES_OF_BATCH = WriteRules(is_batch=True)
_RULES_OF_URL = WriteRules()
_SELECT_NAMED = "SELECT uuid, name FROM resource_providers WHERE name IN :names"


def write_entries(
    transaction: WriteTransaction,
    entries: Sequence[BatchEntry],
    is_allowed: Callable[[str], bool],
    *,
    create_names: bool,
) -> list[EntryOutcome]:
    """Create and change providers; with `create_names`, also create missing custom traits and classes.

    `is_allowed` returns whether a policy rule allows an operation to the caller.

    Raises:
        BatchRefusedError: with all problems.
        BatchForbiddenError: if a policy rule forbids an entry.
    """
    problems: list[EntryFault] = []
    targets = _find_targets(transaction, entries, problems)
    _require_allowed(targets, is_allowed)
    write_targets(transaction, targets, _RULES_OF_BATCH, problems, create_names=create_names)
    return [_make_outcome(target) for target in targets]


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """The generation of a provider after a write, and `PartWriter.modified_at`."""

    generation: int
    modified_at: float = field(compare=False, repr=False)


def write_part(
    transaction: WriteTransaction,
    provider_uuid: str,
    part: ProviderPart[Any],
    value: Any,
    generation: int | None = None,
    *,
    rules: WriteRules = _RULES_OF_URL,
) -> WrittenPart:
    """Write one part of a provider (contract pages 30, 40 and 50, and page 102, section 1).

    Raises:
        ProviderNotFoundError: if the provider does not exist.
        ProviderGenerationConflictError: if a `generation` is given and the provider has another one.
        TreeclaimError: the first problem.
    """
    entry = BatchEntry(provider_uuid, None, values={part.name: value})
    locked_providers = consumption.lock_with_consumed(
        transaction, {provider_uuid}, list_inventories([entry])
    )
    provider = locked_providers.get(provider_uuid)
    if provider is None:
        raise ProviderNotFoundError(provider_uuid)
    if generation is not None:
        require_generation(provider, generation)
    target = Target(0, entry, provider_uuid, provider, is_new=False)
    modified_at = write_targets(transaction, [target], rules, [])
    return WrittenPart(provider.generation, modified_at)


def write_targets(
    transaction: WriteTransaction,
    targets: Sequence[Target],
    rules: WriteRules,
    problems: list[EntryFault],
    *,
    create_names: bool = False,
    check_names: Callable[[], None] = lambda: None,
) -> float:
    """Write entries to their locked providers; return the newest `modified_at` of the parts.

    `check_names` is called after the check of parents, and before the first write.

    Raises:
        BatchRefusedError: with all problems of a batch.
        TreeclaimError: the first problem of another write.
    """
    stop = (lambda _problems: None) if rules.is_batch else raise_first
    writers = [writer(transaction, targets, rules) for writer in WRITERS]
    if create_names:
        for writer in writers:
            writer.create_names()
    for writer in writers:
        writer.look_up(problems)
    stop(problems)
    tree = TreeWriter(transaction, targets, rules)
    tree.judge(problems)
    stop(problems)
    check_names()
    moved_ids = () if problems else tree.write()
    for writer in writers:
        writer.judge(problems)
    stop(problems)
    raise_all(problems)
    for writer in writers:
        writer.write()
    for writer in writers:
        writer.check(problems, moved_ids)
    stop(problems)
    raise_all(problems)
    record_changes(transaction, targets, rules)
    return max(writer.modified_at for writer in writers)


def _find_targets(
    transaction: WriteTransaction, entries: Sequence[BatchEntry], problems: list[EntryFault]
) -> list[Target]:
    """Find and lock the providers of entries; add a problem for each faulty entry, and skip the entry."""
    names = sorted({entry.name for entry in entries if entry.name is not None})
    uuid_by_name = {
        row.name: row.uuid for row in transaction.rows_in_chunks(_SELECT_NAMED, names=names)
    }
    uuids = {uuid for uuid in find_uuids(entries, uuid_by_name) if uuid is not None}
    # One statement for all: a second one could lock rows out of order.
    rows = consumption.lock_with_consumed(transaction, uuids, list_inventories(entries))
    return find_sound_targets(entries, uuid_by_name, rows, problems)


def _require_allowed(targets: Sequence[Target], is_allowed: Callable[[str], bool]) -> None:
    if any(target.is_new for target in targets) and not is_allowed(CREATE_RULE):
        raise BatchForbiddenError(CREATE_RULE)
    is_update = any(
        not target.is_new and (target.is_renamed or not isinstance(target.entry.parent, Omission))
        for target in targets
    )
    if is_update and not is_allowed(UPDATE_RULE):
        raise BatchForbiddenError(UPDATE_RULE)


def _make_outcome(target: Target) -> EntryOutcome:
    if target.is_new:
        result = BatchResult.CREATED
    else:
        result = BatchResult.CHANGED if target.changed else BatchResult.UNCHANGED
    return EntryOutcome(target.uuid, target.row.generation, result, tuple(target.changed))
