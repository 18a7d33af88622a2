# SPDX-License-Identifier: Apache-2.0
"""Resource classes (contract page 60)."""

import sqlalchemy as sa

from treeclaim.model.errors import (
    ResourceClassExistsError,
    ResourceClassInUseError,
    ResourceClassNotFoundError,
    StandardResourceClassError,
)
from treeclaim.model.names import FIRST_CUSTOM_CLASS_ID
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.operations.locks.class_ids import find_ids
from treeclaim.store.operations.locks.lock_rows import CLASS, take_lock_rows
from treeclaim.store.schema.tables import inventories, resource_classes

_GREATEST_ID = sa.select(sa.func.max(resource_classes.c.id))
_INSERT = sa.insert(resource_classes)
# The id alone could now be that of another class.
_UNCHANGED = sa.and_(
    resource_classes.c.id == sa.bindparam("class_id"),
    resource_classes.c.name == sa.bindparam("known_name"),
)
_RENAME = (
    sa.update(resource_classes)
    .where(_UNCHANGED)
    .values(name=sa.bindparam("new_name"), updated_at=sa.bindparam("at"))
)
_USED = sa.select(inventories.c.id).where(
    inventories.c.resource_class_id == sa.bindparam("class_id")
)
_DELETE = sa.delete(resource_classes).where(_UNCHANGED)


def create(transaction: WriteTransaction, name: str) -> None:
    """Create a custom class (section 3).

    Raises:
        ResourceClassExistsError.
    """
    if not ensure(transaction, name):
        raise ResourceClassExistsError(name)


def ensure(transaction: WriteTransaction, name: str) -> bool:
    """Create a custom class if it does not exist (section 6); return whether it was created."""
    if _id(transaction, name) is not None:
        return False
    greatest = transaction.scalar(_GREATEST_ID)
    # Two may choose the same id; the second one breaks its unique constraint and runs again.
    class_id = max(FIRST_CUSTOM_CLASS_ID, (greatest or 0) + 1)
    transaction.execute(_INSERT, id=class_id, name=name, created_at=transaction.now)
    transaction.touch_catalogue()
    return True


def rename(transaction: WriteTransaction, name: str, new_name: str) -> None:
    """Rename a custom class (section 5).

    Raises:
        ResourceClassNotFoundError, StandardResourceClassError, ResourceClassExistsError.
    """
    class_id = _custom_id(transaction, name)
    existing_id = _id(transaction, new_name)
    if existing_id is not None and existing_id != class_id:
        raise ResourceClassExistsError(new_name)
    renamed = transaction.execute(
        _RENAME, class_id=class_id, known_name=name, new_name=new_name, at=transaction.now
    )
    if renamed.rowcount != 1:
        raise RetryTransactionError
    transaction.touch_catalogue()


def delete(transaction: WriteTransaction, name: str) -> None:
    """Delete a custom class (section 7).

    Raises:
        ResourceClassNotFoundError, StandardResourceClassError, ResourceClassInUseError.
    """
    class_id = _custom_id(transaction, name)
    # Delete first: this waits for transactions that lock the class to use it.
    take_lock_rows(transaction, CLASS, [class_id])
    deleted = transaction.execute(_DELETE, class_id=class_id, known_name=name)
    if deleted.rowcount != 1:
        raise RetryTransactionError
    if transaction.row(_USED, class_id=class_id) is not None:
        raise ResourceClassInUseError(name)
    transaction.touch_catalogue()


def _custom_id(transaction: ReadTransaction, name: str) -> int:
    class_id = _id(transaction, name)
    if class_id is None:
        raise ResourceClassNotFoundError(name)
    if class_id < FIRST_CUSTOM_CLASS_ID:
        raise StandardResourceClassError(name)
    return class_id


def _id(transaction: ReadTransaction, name: str) -> int | None:
    return find_ids(transaction, [name]).get(name)
