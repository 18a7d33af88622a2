# SPDX-License-Identifier: Apache-2.0
"""Applies a batch: all of it, or nothing, reporting every fault."""

from collections.abc import Callable, Sequence

import sqlalchemy as sa

from treeclaim.model.extension.batch import (
    Applied,
    BatchEntry,
    BatchForbiddenError,
    BatchRefusedError,
    BatchResult,
    Problem,
    Unnamed,
)
from treeclaim.model.names import is_custom_name
from treeclaim.store.database.transactions import WriteTransaction, chunks
from treeclaim.store.operations.batches import parts, placing
from treeclaim.store.operations.batches.targets import Target, targets_of
from treeclaim.store.operations.catalogue import resource_classes, traits
from treeclaim.store.schema.tables import resource_providers

MOST_PROBLEMS = 100
"""That are told at once (contract page 99, section 8)."""

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
_PARTS = {"inventories", "traits", "aggregates"}


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
    if create_names:
        _create_names(transaction, entries)
    class_ids = parts.known_classes(transaction, targets, problems)
    trait_ids = parts.known_traits(transaction, targets, problems)
    placing.place(transaction, targets, problems)
    parts.set_inventories(transaction, targets, class_ids, problems)
    if problems:
        problems.sort(key=lambda problem: problem.index)
        raise BatchRefusedError(problems[:MOST_PROBLEMS])
    parts.set_traits(transaction, targets, trait_ids)
    parts.set_aggregates(transaction, targets)
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


def _create_names(transaction: WriteTransaction, entries: Sequence[BatchEntry]) -> None:
    """Make what is missing of the custom names."""
    named_traits = {name for entry in entries for name in entry.traits or ()}
    known = traits.traits_named(transaction, named_traits)
    for name in sorted(filter(is_custom_name, named_traits - known.keys())):
        traits.ensure(transaction, name)
    classes = {name for entry in entries for name in entry.inventories or ()}
    for name in sorted(filter(is_custom_name, classes)):
        resource_classes.ensure(transaction, name)


def _raise_generations(transaction: WriteTransaction, targets: Sequence[Target]) -> None:
    """Raise the generation of each provider whose parts are different now, by one."""
    raised = [target.row for target in targets if _PARTS & set(target.changed)]
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
