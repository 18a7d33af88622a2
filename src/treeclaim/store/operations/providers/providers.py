# SPDX-License-Identifier: Apache-2.0
"""Resource providers: create, rename, re-parent, delete (contract page 20)."""

from collections.abc import Collection
from enum import Enum
from typing import Any

import sqlalchemy as sa

from treeclaim.model.errors import (
    DuplicateProviderError,
    InvalidParentError,
    ProviderHasChildrenError,
    ProviderInUseError,
    ProviderNotFoundError,
)
from treeclaim.model.parts import Part
from treeclaim.model.provider import Provider
from treeclaim.store.database.dialects.systems import system_of
from treeclaim.store.database.transactions import (
    ReadTransaction,
    WriteTransaction,
    chunks,
    seconds,
)
from treeclaim.store.operations.locks.lock_rows import PARTS, take_lock_rows
from treeclaim.store.operations.locks.provider_rows import lock_provider
from treeclaim.store.operations.providers.consumption import require_sound, require_unconsumed
from treeclaim.store.operations.providers.trees import lock_parent, move, set_root
from treeclaim.store.schema.tables import (
    ROWS_OF_PROVIDERS,
    allocations,
    attributes,
    conditions,
    consumption,
    resource_providers,
)

_NAMED = sa.select(resource_providers.c.id, resource_providers.c.name).where(
    resource_providers.c.name == sa.bindparam("name")
)
_UUID_TAKEN = resource_providers.c.uuid == sa.bindparam("uuid")
_NAME_TAKEN = sa.func.coalesce(resource_providers.c.name == sa.bindparam("name"), sa.false())
# One query: of two, the second could see a new provider that the first did not.
_TAKEN = sa.select(_UUID_TAKEN.label("uuid_taken"), _NAME_TAKEN.label("name_taken")).where(
    sa.or_(_UUID_TAKEN, resource_providers.c.name == sa.bindparam("name"))
)
_UUID_OF = sa.select(resource_providers.c.uuid).where(
    resource_providers.c.id == sa.bindparam("provider_id")
)
_CHILD_AND_ROOT = sa.select(
    sa.exists(
        sa.select(resource_providers.c.id).where(
            resource_providers.c.parent_provider_id == sa.bindparam("provider_id")
        )
    ).label("has_child"),
    sa.select(resource_providers.c.uuid)
    .where(resource_providers.c.id == sa.bindparam("root_id"))
    .scalar_subquery()
    .label("root"),
)
_ALLOCATION = sa.select(allocations.c.id).where(
    allocations.c.resource_provider_id == sa.bindparam("provider_id")
)
_INSERT = sa.insert(resource_providers)
UPDATE_NAME_AND_PARENT = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == sa.bindparam("provider_id"))
    .values(
        name=sa.bindparam("new_name"),
        parent_provider_id=sa.bindparam("new_parent"),
        updated_at=sa.bindparam("at"),
    )
)
_EXISTS = sa.select(resource_providers.c.uuid).where(
    resource_providers.c.uuid == sa.bindparam("uuid")
)
_DELETE_PARTS = [
    sa.delete(table).where(table.c.resource_provider_id == sa.bindparam("provider_id"))
    for table in ROWS_OF_PROVIDERS
    if table is not allocations
]
_DELETE_LEFT = [
    sa.delete(column.table).where(column.in_(sa.bindparam("ids", expanding=True)))
    for column in (
        attributes.c.resource_provider_id,
        conditions.c.resource_provider_id,
        consumption.c.resource_provider_id,
        consumption.c.consumed_provider_id,
    )
]
# A root refers to itself; some databases require the reference to go before the row.
_DETACH = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == sa.bindparam("provider_id"))
    .values(root_provider_id=None)
)
_DELETE = sa.delete(resource_providers).where(
    resource_providers.c.id == sa.bindparam("provider_id")
)


class KeepParent(Enum):
    """Marks an update that leaves the parent as it is."""

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
    parent = None if parent_uuid is None else lock_parent(transaction, parent_uuid)
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
        set_root(transaction, {provider_id}, provider_id)
    forget_former(transaction, [provider_id])
    transaction.touch_providers([provider_id])
    return Provider(
        uuid=uuid,
        name=name,
        generation=0,
        parent_uuid=parent_uuid,
        root_uuid=uuid if parent is None else _uuid_of(transaction, parent.root_id),
        modified_at=seconds(transaction.now),
    )


def forget_former(transaction: WriteTransaction, ids: Collection[int]) -> None:
    """Remove what is left of former providers with the ids of new ones.

    Only programs that know no attributes, consumption and conditions leave these behind.
    """
    if system_of(transaction.connection).GIVES_IDS_AGAIN:
        for batch in chunks(sorted(ids)):
            for statement in _DELETE_LEFT:
                transaction.execute(statement, ids=batch)


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
        transaction: The one that writes.
        uuid: The provider.
        name: The new name, or the present one.
        parent: Uuid of the new parent, None to make it a root.
        may_reparent: False below 1.37: a parent can be given once only.

    Raises:
        ProviderNotFoundError: if it does not exist.
        DuplicateProviderError: if another provider has the name.
        InvalidParentError: as section 5.1 lists.
    """
    provider = lock_provider(transaction, uuid)
    parent_id = provider.parent_id
    if not isinstance(parent, KeepParent):
        parent_id = move(transaction, provider, parent, may_reparent=may_reparent)
    namesake = transaction.row(_NAMED, name=name)
    if namesake is not None and namesake.id != provider.id:
        raise DuplicateProviderError(name=name)
    transaction.execute(
        UPDATE_NAME_AND_PARENT,
        provider_id=provider.id,
        new_name=name,
        new_parent=parent_id,
        at=transaction.now,
    )
    transaction.touch_providers([provider.id], Part.PROVIDER)
    if parent_id != provider.parent_id:
        require_sound(transaction, transaction.touched_providers)
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
    provider = lock_provider(transaction, uuid)
    take_lock_rows(transaction, PARTS, [provider.id])
    child_and_root = transaction.row(
        _CHILD_AND_ROOT, provider_id=provider.id, root_id=provider.root_id
    )
    if child_and_root.has_child:
        raise ProviderHasChildrenError(uuid)
    if transaction.row(_ALLOCATION, provider_id=provider.id) is not None:
        raise ProviderInUseError(uuid)
    require_unconsumed(transaction, provider)
    for statement in (*_DELETE_PARTS, _DETACH, _DELETE):
        transaction.execute(statement, provider_id=provider.id)
    transaction.touch_deleted(provider.id, provider.uuid, child_and_root.root or provider.uuid)


def require_exists(transaction: ReadTransaction, uuid: str) -> None:
    """Check that there is a provider with exactly this uuid.

    Raises:
        ProviderNotFoundError: if there is none.
    """
    # Some collations match other spellings too.
    if transaction.scalar(_EXISTS, uuid=uuid) != uuid:
        raise ProviderNotFoundError(uuid)


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
        raise RuntimeError("the database returned no id for the inserted row")
    return int(key[0])
