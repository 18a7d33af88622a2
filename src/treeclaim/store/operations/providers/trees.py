# SPDX-License-Identifier: Apache-2.0
"""Trees of providers: parents, roots and subtrees, and the locks on their shape.

Two concurrent moves could make a loop that neither of them sees. So a write that changes the shape
of a tree locks its root first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from treeclaim.model.errors import InvalidParentError
from treeclaim.model.parts import Part
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.operations.locks.lock_rows import TREE, take_lock_rows
from treeclaim.store.operations.locks.provider_rows import LockedProvider
from treeclaim.store.schema.tables import resource_providers

_BY_UUID = sa.select(
    resource_providers.c.id, resource_providers.c.uuid, resource_providers.c.root_provider_id
).where(resource_providers.c.uuid == sa.bindparam("uuid"))
_LOCK_ROOTS = (
    sa.select(resource_providers.c.id)
    .where(resource_providers.c.id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(resource_providers.c.id)
    .with_for_update()
)
_TREE = sa.select(
    resource_providers.c.id, resource_providers.c.uuid, resource_providers.c.parent_provider_id
).where(resource_providers.c.root_provider_id == sa.bindparam("root_id"))
_SET_ROOT = (
    sa.update(resource_providers)
    .where(resource_providers.c.id.in_(sa.bindparam("ids", expanding=True)))
    .values(root_provider_id=sa.bindparam("new_root"))
)


@dataclass(frozen=True, slots=True)
class Parent:
    """A provider that is to be the parent of another one; its tree is locked.

    Attributes:
        id: Its id.
        root_id: Id of its root.
    """

    id: int
    root_id: int


def lock_parent(
    transaction: WriteTransaction, uuid: str, *, moved_from: int | None = None
) -> Parent:
    """Find a parent, and lock the shape of its tree.

    Args:
        transaction: The one that locks.
        uuid: The parent.
        moved_from: Root of the tree from which a provider is moved; it is locked too.

    Raises:
        InvalidParentError: if the parent does not exist.
        RetryTransactionError: if it moved to another tree before that was locked.
    """
    parent = _found(transaction, uuid)
    lock_shapes(
        transaction, {parent.root_id, parent.root_id if moved_from is None else moved_from}
    )
    if _found(transaction, uuid) != parent:
        raise RetryTransactionError
    return parent


def move(
    transaction: WriteTransaction,
    provider: LockedProvider,
    parent: str | None,
    *,
    may_reparent: bool,
) -> int | None:
    """Give a provider's subtree the root of a new parent; return the parent's id.

    The caller writes the provider's own parent.

    Raises:
        InvalidParentError: as section 5.1 lists.
    """
    new = None
    if parent is not None:
        new = lock_parent(transaction, parent, moved_from=provider.root_id)
    else:
        lock_shapes(transaction, {provider.root_id})
    new_id = None if new is None else new.id
    if new_id == provider.parent_id:
        return new_id
    if provider.parent_id is not None and not may_reparent:
        kind = "un-parenting" if new is None else "re-parenting"
        raise InvalidParentError(f"{kind} a provider is not currently allowed.")
    tree = transaction.rows(_TREE, root_id=provider.root_id)
    subtree = _subtree(tree, provider.id)
    if new_id in subtree:
        raise InvalidParentError("creating loop in the provider tree is not allowed.")
    root_id = provider.id if new is None else new.root_id
    set_root(transaction, subtree, root_id)
    before = next((row.uuid for row in tree if row.id == provider.root_id), provider.uuid)
    transaction.touch_providers(subtree, Part.PROVIDER, tree=before)
    provider.root_id = root_id
    return new_id


def ids_at_and_below(transaction: ReadTransaction, root_id: int, provider_id: int) -> set[int]:
    """Return the ids of a provider and of all below it, given its root."""
    return _subtree(transaction.rows(_TREE, root_id=root_id), provider_id)


def set_root(transaction: WriteTransaction, ids: set[int], root_id: int) -> None:
    """Write the root of some providers."""
    transaction.execute(_SET_ROOT, ids=sorted(ids), new_root=root_id)


def lock_shapes(transaction: WriteTransaction, roots: set[int]) -> None:
    """Prevent other changes of the shape of some trees, on every node of a cluster."""
    transaction.rows(_LOCK_ROOTS, ids=sorted(roots))
    take_lock_rows(transaction, TREE, roots)


def _found(transaction: ReadTransaction, uuid: str) -> Parent:
    row = transaction.row(_BY_UUID, uuid=uuid)
    if row is None or row.uuid != uuid:
        raise InvalidParentError("parent provider UUID does not exist.")
    return Parent(row.id, row.id if row.root_provider_id is None else row.root_provider_id)


def _subtree(tree: Sequence[Any], provider_id: int) -> set[int]:
    """Return the ids of a provider and all below it, of the rows of its tree."""
    children: dict[int, list[int]] = {}
    for row in tree:
        children.setdefault(row.parent_provider_id, []).append(row.id)
    subtree = {provider_id}
    pending = [provider_id]
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in subtree:
                subtree.add(child)
                pending.append(child)
    return subtree
