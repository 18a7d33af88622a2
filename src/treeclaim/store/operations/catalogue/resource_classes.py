# SPDX-License-Identifier: Apache-2.0
"""Resource classes (contract page 60) and their ids.

A new class may reuse the id of a deleted one (section 1). An id is stable only while a lock prevents the
deletion of its class: a lock on the row of the class, or on a provider with an inventory of it.
"""

from collections.abc import Iterable, Mapping, Sequence

from treeclaim.model.errors import (
    ResourceClassExistsError,
    ResourceClassInUseError,
    ResourceClassNotFoundError,
    StandardResourceClassError,
)
from treeclaim.model.names import CUSTOM_PREFIX, FIRST_CUSTOM_CLASS_ID
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.schema.tables import resource_classes

_SELECT_NAMED = "SELECT id, name FROM resource_classes WHERE name IN :names"
_LOCK_NAMED = f"{_SELECT_NAMED} ORDER BY id FOR KEY SHARE"
_SELECT_WITH_ID = "SELECT id, name FROM resource_classes WHERE id IN :ids"
_GREATEST_ID = "SELECT MAX(id) FROM resource_classes"
_INSERT = compile_insert(resource_classes)
# By name too: the id may belong to another class by now.
_IF_UNCHANGED = "WHERE id = :class_id AND name = :known_name"
_RENAME = f"UPDATE resource_classes SET name = :new_name, updated_at = :at {_IF_UNCHANGED}"
_SELECT_USE = "SELECT id FROM inventories WHERE resource_class_id = :class_id LIMIT 1"
_DELETE = f"DELETE FROM resource_classes {_IF_UNCHANGED}"


def create(transaction: WriteTransaction, name: str) -> None:
    """Create a custom class (section 3); raise `ResourceClassExistsError` if it exists."""
    if not ensure(transaction, name):
        raise ResourceClassExistsError(name)


def ensure(transaction: WriteTransaction, name: str) -> bool:
    """Create a custom class if it does not exist (section 6); return whether it was created."""
    if _find_id(transaction, name) is not None:
        return False
    greatest_id = transaction.scalar(_GREATEST_ID)
    # A concurrent transaction may insert the same id: the later one violates the constraint and retries.
    class_id = max(FIRST_CUSTOM_CLASS_ID, (greatest_id or 0) + 1)
    transaction.execute(_INSERT, id=class_id, name=name, created_at=transaction.now)
    transaction.touch_catalogue()
    return True


def rename(transaction: WriteTransaction, name: str, new_name: str) -> None:
    """Rename a custom class (section 5).

    Raises:
        ResourceClassNotFoundError, StandardResourceClassError, ResourceClassExistsError.
    """
    class_id = _require_custom_id(transaction, name)
    existing_id = _find_id(transaction, new_name)
    if existing_id is not None and existing_id != class_id:
        raise ResourceClassExistsError(new_name)
    rename_result = transaction.execute(
        _RENAME, class_id=class_id, known_name=name, new_name=new_name, at=transaction.now
    )
    if rename_result.rowcount != 1:
        raise RetryTransactionError
    transaction.touch_catalogue()


def delete(transaction: WriteTransaction, name: str) -> None:
    """Delete a custom class (section 7).

    Raises:
        ResourceClassNotFoundError, StandardResourceClassError, ResourceClassInUseError.
    """
    class_id = _require_custom_id(transaction, name)
    # Delete before the check: the statement waits for transactions that lock the class to use it.
    deletion = transaction.execute(_DELETE, class_id=class_id, known_name=name)
    if deletion.rowcount != 1:
        raise RetryTransactionError
    if transaction.row(_SELECT_USE, class_id=class_id) is not None:
        raise ResourceClassInUseError(name)
    transaction.touch_catalogue()


def _require_custom_id(transaction: ReadTransaction, name: str) -> int:
    class_id = _find_id(transaction, name)
    if class_id is None:
        raise ResourceClassNotFoundError(name)
    if class_id < FIRST_CUSTOM_CLASS_ID:
        raise StandardResourceClassError(name)
    return class_id


def _find_id(transaction: ReadTransaction, name: str) -> int | None:
    return find_ids(transaction, [name]).get(name)


def find_ids(transaction: ReadTransaction, names: Iterable[str]) -> Mapping[str, int]:
    """Return the ids of the resource classes that exist, by name."""
    return _find_ids(transaction, _SELECT_NAMED, sorted(set(names)))


def lock_classes(transaction: WriteTransaction, names: Iterable[str]) -> Mapping[str, int]:
    """Return the ids of the resource classes that exist, by name, locked until the transaction ends.

    Inventories have no foreign key to their class. Standard classes never change and need no lock.
    """
    names = set(names)
    custom_names = {name for name in names if name.startswith(CUSTOM_PREFIX)}
    locked_ids = _find_ids(transaction, _LOCK_NAMED, sorted(custom_names))
    return locked_ids | _find_ids(transaction, _SELECT_NAMED, sorted(names - custom_names))


def require_unchanged_ids(
    transaction: ReadTransaction, known_ids: Mapping[str, int], names: Iterable[str]
) -> None:
    """Raise `RetryTransactionError` unless names still have the known ids, on which a refusal relies."""
    sorted_names = sorted(names)
    id_by_name = _find_ids(transaction, _SELECT_NAMED, sorted_names)
    if any(id_by_name.get(name) != known_ids.get(name) for name in sorted_names):
        raise RetryTransactionError


def load_class_names(transaction: ReadTransaction, ids: Iterable[int]) -> Mapping[int, str]:
    """Return the names of resource classes by id."""
    return {row.id: row.name for row in transaction.rows(_SELECT_WITH_ID, ids=sorted(set(ids)))}


def _find_ids(
    transaction: ReadTransaction, statement: str, names: Sequence[str]
) -> dict[str, int]:
    return {row.name: row.id for row in transaction.rows_in_chunks(statement, names=names)}
