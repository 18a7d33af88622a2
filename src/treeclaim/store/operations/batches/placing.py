# SPDX-License-Identifier: Apache-2.0
"""Creates the new providers of a batch, parents before their children, and moves the others."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from treeclaim.model.errors import InvalidParentError, TreeclaimError
from treeclaim.model.extension.batch import Problem, Unnamed
from treeclaim.store.database.transactions import RetryTransactionError, WriteTransaction
from treeclaim.store.operations.batches.targets import Target
from treeclaim.store.operations.locks.provider_rows import lock_providers
from treeclaim.store.operations.providers import providers
from treeclaim.store.operations.providers.trees import lock_parent
from treeclaim.store.schema.tables import resource_providers

_INSERT = sa.insert(resource_providers)
_OWN_ROOT = (
    sa.update(resource_providers)
    .where(
        resource_providers.c.uuid.in_(sa.bindparam("uuids", expanding=True)),
        resource_providers.c.root_provider_id.is_(None),
    )
    .values(root_provider_id=resource_providers.c.id)
)
_NO_PARENT = "parent provider UUID does not exist."
_OWN_PARENT = "parent provider UUID cannot be same as UUID."
_LOOP = "creating loop in the provider tree is not allowed."


def create(
    transaction: WriteTransaction, targets: Sequence[Target], problems: list[Problem]
) -> None:
    """Create the new providers; those with something wrong about their parent are noted."""
    waiting = {target.uuid: target for target in targets if target.is_new}
    known = {target.uuid: target for target in targets}
    for target in list(waiting.values()):
        if _parent(target) == target.uuid:
            problems.append(Problem(target.index, InvalidParentError(_OWN_PARENT)))
            del waiting[target.uuid]
    parents = _outer_parents(transaction, waiting, known, problems)
    while waiting:
        ready = [target for target in waiting.values() if _is_ready(target, known, waiting)]
        if not ready:
            # Whoever waits for somebody who was refused waits in a circle or in vain.
            problems += [
                Problem(target.index, InvalidParentError(_LOOP)) for target in waiting.values()
            ]
            return
        _insert(transaction, ready, known, parents)
        for target in ready:
            del waiting[target.uuid]


def _parent(target: Target) -> str | None:
    parent = target.entry.parent
    return None if isinstance(parent, Unnamed) else parent


def _is_ready(target: Target, known: Mapping[str, Target], waiting: Mapping[str, Target]) -> bool:
    parent = _parent(target)
    return parent is None or parent not in known or parent not in waiting


def _outer_parents(
    transaction: WriteTransaction,
    waiting: dict[str, Target],
    known: Mapping[str, Target],
    problems: list[Problem],
) -> dict[str, tuple[int, int]]:
    """Lock the trees of parents that exist; return id and root of each by uuid."""
    found: dict[str, tuple[int, int]] = {}
    for target in list(waiting.values()):
        uuid = _parent(target)
        if uuid is None or uuid in found or (uuid in known and known[uuid].is_new):
            continue
        try:
            parent = lock_parent(transaction, uuid)
        except InvalidParentError:
            problems.append(Problem(target.index, InvalidParentError(_NO_PARENT)))
            del waiting[target.uuid]
        else:
            found[uuid] = (parent.id, parent.root_id)
    return found


def _insert(
    transaction: WriteTransaction,
    ready: Sequence[Target],
    known: Mapping[str, Target],
    parents: Mapping[str, tuple[int, int]],
) -> None:
    """Insert some providers whose parents exist, and lock them."""
    rows = []
    for target in ready:
        uuid = _parent(target)
        parent_id = root_id = None
        if uuid is not None and uuid in parents:
            parent_id, root_id = parents[uuid]
        elif uuid is not None:
            parent_id, root_id = known[uuid].row.id, known[uuid].row.root_id
        rows.append(
            {
                "uuid": target.uuid,
                "name": target.entry.name,
                "generation": 0,
                "parent_provider_id": parent_id,
                "root_provider_id": root_id,
                "created_at": transaction.now,
            }
        )
    transaction.execute_each(_INSERT, rows)
    uuids = [target.uuid for target in ready]
    transaction.execute(_OWN_ROOT, uuids=uuids)
    found = {row.uuid: row for row in lock_providers(transaction, uuids)}
    if len(found) != len(ready):
        raise RetryTransactionError
    for target in ready:
        target.provider = found[target.uuid]
    transaction.touch_providers(row.id for row in found.values())


def move(
    transaction: WriteTransaction, targets: Sequence[Target], problems: list[Problem]
) -> None:
    """Rename and move the providers that existed."""
    for target in targets:
        if target.is_new:
            continue
        try:
            _move(transaction, target)
        except TreeclaimError as error:
            problems.append(Problem(target.index, error))


def _move(transaction: WriteTransaction, target: Target) -> None:
    entry, row = target.entry, target.row
    is_renamed = entry.name is not None and entry.name != row.name
    parent: str | providers.KeepParent | None = providers.KeepParent.KEEP
    if not isinstance(entry.parent, Unnamed) and _parent_uuid(transaction, row.parent_id) != (
        entry.parent
    ):
        parent = entry.parent
    if not is_renamed and isinstance(parent, providers.KeepParent):
        return
    providers.update(transaction, target.uuid, name=entry.name or row.name, parent=parent)
    if is_renamed:
        target.changed.append("name")
    if not isinstance(parent, providers.KeepParent):
        target.changed.append("parent_provider_uuid")


def _parent_uuid(transaction: WriteTransaction, parent_id: int | None) -> str | None:
    if parent_id is None:
        return None
    named = sa.select(resource_providers.c.uuid).where(resource_providers.c.id == parent_id)
    found: str | None = transaction.scalar(named)
    return found
