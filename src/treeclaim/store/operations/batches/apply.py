# SPDX-License-Identifier: Apache-2.0
"""Applies a batch: all of it, or nothing, reporting every fault."""

from collections.abc import Callable, Sequence

import sqlalchemy as sa

from treeclaim.model.extension.batches.batch import (
    Applied,
    BatchEntry,
    BatchForbiddenError,
    BatchRefusedError,
    BatchResult,
    Problem,
    Unnamed,
)
from treeclaim.model.parts import PART_NAMES
from treeclaim.store.database.transactions import WriteTransaction, chunks
from treeclaim.store.operations.batches import placing
from treeclaim.store.operations.batches.parts import WRITERS
from treeclaim.store.operations.batches.targets import Target, targets_of
from treeclaim.store.schema.tables import resource_providers

MOST_PROBLEMS = 100
"""How many problems are reported at once (contract page 99, section 8)."""

CREATE_RULE = "placement:resource_providers:create"
UPDATE_RULE = "placement:resource_providers:update"

_RAISE_GENERATIONS = (
    sa.update(resource_providers)
    .where(resource_providers.c.id.in_(sa.bindparam("ids", expanding=True)))
    .values(
        generation=sa.func.coalesce(resource_providers.c.generation, 0) + 1,
        updated_at=sa.bindparam("at"),
    )
)


def apply(
    transaction: WriteTransaction,
    entries: Sequence[BatchEntry],
    is_allowed: Callable[[str], bool],
    *,
    create_names: bool,
) -> list[Applied]:
    """Bring providers to a state (section 8); return what became of each entry.

    Args:
        transaction: It does nothing else.
        entries: What is to be.
        is_allowed: Tells whether the policy's rule for making, or for renaming and moving
            providers lets the caller do so.
        create_names: Whether custom traits and classes that are missing are made.

    Raises:
        BatchRefusedError: with all that is wrong.
        BatchForbiddenError: if a rule forbids it.
    """
    problems: list[Problem] = []
    targets = targets_of(transaction, entries, problems)
    _require_allowed(targets, is_allowed)
    writers = [writer(transaction, targets) for writer in WRITERS]
    if create_names:
        for writer in writers:
            writer.create_names()
    for writer in writers:
        writer.look_up(problems)
    placing.place(transaction, targets, problems)
    for writer in writers:
        writer.judge(problems)
    if problems:
        problems.sort(key=lambda problem: problem.index)
        raise BatchRefusedError(problems[:MOST_PROBLEMS])
    for writer in writers:
        writer.write()
    for writer in writers:
        writer.check()
    _raise_generations(transaction, targets)
    return [_outcome(target) for target in targets]


def _require_allowed(targets: Sequence[Target], is_allowed: Callable[[str], bool]) -> None:
    if any(target.is_new for target in targets) and not is_allowed(CREATE_RULE):
        raise BatchForbiddenError(CREATE_RULE)
    renames = any(
        not target.is_new
        and (
            target.entry.name not in {None, target.row.name}
            or not isinstance(target.entry.parent, Unnamed)
        )
        for target in targets
    )
    if renames and not is_allowed(UPDATE_RULE):
        raise BatchForbiddenError(UPDATE_RULE)


def _raise_generations(transaction: WriteTransaction, targets: Sequence[Target]) -> None:
    """Raise the generation of each provider whose parts are different now, by one."""
    raised = [target.row for target in targets if not PART_NAMES.isdisjoint(target.changed)]
    for chunk in chunks(sorted(row.id for row in raised)):
        transaction.execute(_RAISE_GENERATIONS, ids=chunk, at=transaction.now)
    for row in raised:
        row.generation += 1
    transaction.touch_providers(row.id for row in raised)


def _outcome(target: Target) -> Applied:
    if target.is_new:
        result = BatchResult.CREATED
    else:
        result = BatchResult.CHANGED if target.changed else BatchResult.UNCHANGED
    return Applied(target.uuid, target.row.generation, result, tuple(target.changed))
