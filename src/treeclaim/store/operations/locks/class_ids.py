# SPDX-License-Identifier: Apache-2.0
"""Ids of resource classes by name, locked where the id must keep its meaning.

The id of a deleted class is given to the next one that is created (contract page 60, section 1). An
id keeps its meaning only while something prevents the deletion of the class: a lock on its row, or
an inventory of it on a provider that is locked.
"""

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from treeclaim.model.names import CUSTOM_PREFIX
from treeclaim.store.database.compiled import CompiledStatement, bind_list
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.operations.locks.lock_rows import CLASS, share_row_locks, take_lock_rows
from treeclaim.store.schema.tables import resource_classes

_ROWS_NAMED = sa.select(resource_classes.c.id, resource_classes.c.name).where(
    resource_classes.c.name.in_(bind_list("names"))
)
_NAMED = CompiledStatement(_ROWS_NAMED)
_LOCKED = share_row_locks(_ROWS_NAMED.order_by(resource_classes.c.id))
_WITH_ID = CompiledStatement(
    sa.select(resource_classes.c.id, resource_classes.c.name).where(
        resource_classes.c.id.in_(bind_list("ids"))
    )
)


def find_ids(transaction: ReadTransaction, names: Iterable[str]) -> Mapping[str, int]:
    """Return the ids of the resource classes that exist, by name."""
    return _find(transaction, _NAMED, sorted(set(names)))


def lock_classes(transaction: WriteTransaction, names: Iterable[str]) -> Mapping[str, int]:
    """Return the ids of the resource classes that exist, by name, locked until the transaction ends.

    Inventories have no foreign key to their class. Standard classes never change.
    """
    distinct_names = list(dict.fromkeys(names))
    custom = _find(transaction, _LOCKED, [name for name in distinct_names if _is_custom(name)])
    standard = _find(
        transaction, _NAMED, [name for name in distinct_names if not _is_custom(name)]
    )
    take_lock_rows(transaction, CLASS, custom.values())
    return custom | standard


def require_unchanged_ids(
    transaction: ReadTransaction, known: Mapping[str, int], names: Iterable[str]
) -> None:
    """Check that names still have the ids that were found, before a refusal relies on them.

    Raises:
        RetryTransactionError: if a name has another id by now.
    """
    sorted_names = sorted(names)
    id_by_name = _find(transaction, _NAMED, sorted_names)
    if any(id_by_name.get(name) != known.get(name) for name in sorted_names):
        raise RetryTransactionError


def names_of(transaction: ReadTransaction, ids: Iterable[int]) -> Mapping[int, str]:
    """Return the names of resource classes by id."""
    return {row.id: row.name for row in transaction.rows(_WITH_ID, ids=sorted(set(ids)))}


def _find(
    transaction: ReadTransaction, statement: CompiledStatement, names: Sequence[str]
) -> dict[str, int]:
    if not names:
        return {}
    return {row.name: row.id for row in transaction.rows_in_chunks(statement, names=names)}


def _is_custom(name: str) -> bool:
    return name.startswith(CUSTOM_PREFIX)
