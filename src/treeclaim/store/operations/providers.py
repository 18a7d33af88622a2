# SPDX-License-Identifier: Apache-2.0
"""Resource providers: create, rename, re-parent, delete (contract page 20)."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa

from treeclaim.model.errors import (
    DuplicateProviderError,
    InvalidParentError,
    ProviderHasChildrenError,
    ProviderInUseError,
)
from treeclaim.model.provider import Provider
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    seconds,
)
from treeclaim.store.operations.marks import PARTS, TREE, mark
from treeclaim.store.operations.provider_rows import ProviderRow, locked
from treeclaim.store.schema.tables import (
    allocations,
    inventories,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)

_BY_UUID = sa.select(
    resource_providers.c.id, resource_providers.c.uuid, resource_providers.c.root_provider_id
).where(resource_providers.c.uuid == sa.bindparam("uuid"))
_LOCKED_ROOTS = (
    sa.select(resource_providers.c.id)
    .where(resource_providers.c.id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(resource_providers.c.id)
    .with_for_update()
)
_NAMED = sa.select(resource_providers.c.id, resource_providers.c.name).where(
    resource_providers.c.name == sa.bindparam("name")
)
_UUID_TAKEN = resource_providers.c.uuid == sa.bindparam("uuid")
_NAME_TAKEN = sa.func.coalesce(resource_providers.c.name == sa.bindparam("name"), sa.false())
# One question: two could find one provider's name and not yet its uuid.
_TAKEN = sa.select(_UUID_TAKEN.label("uuid_taken"), _NAME_TAKEN.label("name_taken")).where(
    sa.or_(_UUID_TAKEN, resource_providers.c.name == sa.bindparam("name"))
)
_UUID_OF = sa.select(resource_providers.c.uuid).where(
    resource_providers.c.id == sa.bindparam("provider_id")
)
_TREE = sa.select(resource_providers.c.id, resource_providers.c.parent_provider_id).where(
    resource_providers.c.root_provider_id == sa.bindparam("root_id")
)
_CHILD = sa.select(resource_providers.c.id).where(
    resource_providers.c.parent_provider_id == sa.bindparam("provider_id")
)
_ALLOCATION = sa.select(allocations.c.id).where(
    allocations.c.resource_provider_id == sa.bindparam("provider_id")
)
_INSERT = sa.insert(resource_providers)
_SET_ROOT = (
    sa.update(resource_providers)
    .where(resource_providers.c.id.in_(sa.bindparam("ids", expanding=True)))
    .values(root_provider_id=sa.bindparam("new_root"))
)
_UPDATE = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == sa.bindparam("provider_id"))
    .values(
        name=sa.bindparam("new_name"),
        parent_provider_id=sa.bindparam("new_parent"),
        updated_at=sa.bindparam("at"),
    )
)
_DELETE_PARTS = [
    sa.delete(table).where(table.c.resource_provider_id == sa.bindparam("provider_id"))
    for table in (inventories, resource_provider_aggregates, resource_provider_traits)
]
# A root points at itself; the reference must go before some databases let the row go.
_DETACH = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == sa.bindparam("provider_id"))
    .values(root_provider_id=None)
)
_DELETE = sa.delete(resource_providers).where(
    resource_providers.c.id == sa.bindparam("provider_id")
)


class KeepParent(Enum):
    """Says that an update leaves the parent as it is."""

    KEEP = "keep"


def create(
    transaction: WriteTransaction, *, uuid: str, name: str, parent_uuid: str | None
) -> Provider:
    """Create a provider (section 3).

    Raises:
        InvalidParentError: if the parent is the provider itself or does not exist.
        DuplicateProviderError: if uuid or name are taken.
    """
    if parent_uuid == uuid:
        raise InvalidParentError("parent provider UUID cannot be same as UUID.")
    parent = None if parent_uuid is None else _parent_row(transaction, parent_uuid)
    _require_unused(transaction, uuid, name)
    result = transaction.execute(
        _INSERT,
        uuid=uuid,
        name=name,
        generation=0,
        parent_provider_id=None if parent is None else parent.id,
        root_provider_id=None if parent is None else parent.root_id,
        created_at=transaction.now,
    )
    provider_id = int(_primary_key(result))
    if parent is None:
        transaction.execute(_SET_ROOT, ids=[provider_id], new_root=provider_id)
    transaction.touch_providers([provider_id])
    return Provider(
        uuid=uuid,
        name=name,
        generation=0,
        parent_uuid=parent_uuid,
        root_uuid=uuid if parent is None else _uuid_of(transaction, parent.root_id),
        modified_at=seconds(transaction.now),
    )


def update(
    transaction: WriteTransaction,
    uuid: str,
    *,
    name: str,
    parent: str | KeepParent | None = KeepParent.KEEP,
    may_reparent: bool = True,
) -> Provider:
    """Rename a provider, or move it with its subtree (section 5).

    Args:
        transaction: Where it happens.
        uuid: The provider.
        name: The new name, or the present one.
        parent: Uuid of the new parent, None to make it a root.
        may_reparent: False below 1.37: a parent can be given once only.

    Raises:
        ProviderNotFoundError: if it does not exist.
        DuplicateProviderError: if another provider has the name.
        InvalidParentError: as section 5.1 lists.
    """
    provider = locked(transaction, uuid)
    parent_id = provider.parent_id
    if not isinstance(parent, KeepParent):
        parent_id = _moved(transaction, provider, parent, may_reparent=may_reparent)
    other = transaction.row(_NAMED, name=name)
    if other is not None and other.id != provider.id:
        raise DuplicateProviderError(name=name)
    transaction.execute(
        _UPDATE, provider_id=provider.id, new_name=name, new_parent=parent_id, at=transaction.now
    )
    transaction.touch_providers([provider.id])
    return Provider(
        uuid=uuid,
        name=name,
        generation=provider.generation,
        parent_uuid=None if parent_id is None else _uuid_of(transaction, parent_id),
        root_uuid=_uuid_of(transaction, provider.root_id),
        modified_at=seconds(transaction.now),
    )


def delete(transaction: WriteTransaction, uuid: str) -> None:
    """Delete a provider with its inventories and associations (section 6).

    Raises:
        ProviderNotFoundError, ProviderHasChildrenError, ProviderInUseError.
    """
    provider = locked(transaction, uuid)
    mark(transaction, PARTS, [provider.id])
    if transaction.row(_CHILD, provider_id=provider.id) is not None:
        raise ProviderHasChildrenError(uuid)
    if transaction.row(_ALLOCATION, provider_id=provider.id) is not None:
        raise ProviderInUseError(uuid)
    for statement in (*_DELETE_PARTS, _DETACH, _DELETE):
        transaction.execute(statement, provider_id=provider.id)
    transaction.touch_providers([provider.id])


def _moved(
    transaction: WriteTransaction, provider: ProviderRow, parent: str | None, *, may_reparent: bool
) -> int | None:
    """Give a provider another parent, and its subtree another root; return the parent's id."""
    new = None
    if parent is not None:
        new = _parent_row(transaction, parent, moved_from=provider.root_id)
    else:
        _hold_trees(transaction, {provider.root_id})
    new_id = None if new is None else new.id
    if new_id == provider.parent_id:
        return new_id
    if provider.parent_id is not None and not may_reparent:
        kind = "un-parenting" if new is None else "re-parenting"
        raise InvalidParentError(f"{kind} a provider is not currently allowed.")
    subtree = _subtree(transaction, provider)
    if new_id in subtree:
        raise InvalidParentError("creating loop in the provider tree is not allowed.")
    root_id = provider.id if new is None else new.root_id
    transaction.execute(_SET_ROOT, ids=sorted(subtree), new_root=root_id)
    transaction.touch_providers(subtree)
    provider.root_id = root_id
    return new_id


def _subtree(transaction: WriteTransaction, provider: ProviderRow) -> set[int]:
    """Return the ids of a provider and all below it."""
    children: dict[int, list[int]] = {}
    for row in transaction.rows(_TREE, root_id=provider.root_id):
        children.setdefault(row.parent_provider_id, []).append(row.id)
    subtree = {provider.id}
    pending = [provider.id]
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in subtree:
                subtree.add(child)
                pending.append(child)
    return subtree


@dataclass(frozen=True, slots=True)
class _Parent:
    """A provider that is to be a parent."""

    id: int
    root_id: int


def _parent_row(
    transaction: WriteTransaction, uuid: str, *, moved_from: int | None = None
) -> _Parent:
    """Find a parent, and hold its tree (and the one moved from) still.

    Two moves at the same time could make a loop that neither of them sees. So whoever changes
    the shape of a tree locks its root first.
    """
    parent = _found_parent(transaction, uuid)
    _hold_trees(
        transaction, {parent.root_id, parent.root_id if moved_from is None else moved_from}
    )
    if _found_parent(transaction, uuid) != parent:
        raise RetryTransactionError
    return parent


def _hold_trees(transaction: WriteTransaction, roots: set[int]) -> None:
    """Let nobody else change the shape of some trees, on this node or another one."""
    transaction.rows(_LOCKED_ROOTS, ids=sorted(roots))
    mark(transaction, TREE, roots)


def _found_parent(transaction: ReadTransaction, uuid: str) -> _Parent:
    row = transaction.row(_BY_UUID, uuid=uuid)
    if row is None or row.uuid != uuid:
        raise InvalidParentError("parent provider UUID does not exist.")
    return _Parent(row.id, row.id if row.root_provider_id is None else row.root_provider_id)


def _require_unused(transaction: ReadTransaction, uuid: str, name: str) -> None:
    rows = transaction.rows(_TAKEN, uuid=uuid, name=name)
    if rows:
        raise DuplicateProviderError(
            uuid=uuid if any(row.uuid_taken for row in rows) else None,
            name=name if any(row.name_taken for row in rows) else None,
        )


def _uuid_of(transaction: ReadTransaction, provider_id: int) -> str:
    return str(transaction.scalar(_UUID_OF, provider_id=provider_id))


def _primary_key(result: sa.CursorResult[Any]) -> int:
    key = result.inserted_primary_key
    if key is None:
        raise RuntimeError("the database gave no id for the row just inserted")
    return int(key[0])
