# SPDX-License-Identifier: Apache-2.0
"""Trees of providers: parents, roots and subtrees, and the locks on their shape.

Two concurrent moves could make a loop that neither of them sees. So a write that changes the shape
of a tree locks its root first.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from treeclaim.store.database.compiled import bind_list
from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction
from treeclaim.store.operations.locks.lock_rows import TREE, take_lock_rows
from treeclaim.store.schema.tables import resource_providers

_LOCK_ROOTS = (
    sa.select(resource_providers.c.id)
    .where(resource_providers.c.id.in_(bind_list("ids")))
    .order_by(resource_providers.c.id)
    .with_for_update()
)
_TREE = sa.select(
    resource_providers.c.id, resource_providers.c.uuid, resource_providers.c.parent_provider_id
).where(resource_providers.c.root_provider_id == sa.bindparam("root_id"))
_SET_ROOT = (
    sa.update(resource_providers)
    .where(resource_providers.c.id.in_(bind_list("ids")))
    .values(root_provider_id=sa.bindparam("new_root"))
)


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
