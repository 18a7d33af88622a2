# SPDX-License-Identifier: Apache-2.0
"""Creates projects, users and consumer types before the claims that first name them.

A name is unique, so the second transaction that inserts it waits until the first one ends. If that
were the claim's own, the first claim of a project would delay all others of that project while it
waits for its providers. So a name is committed first, in a short transaction, as existing
deployments have it (contract page 70, section 1.1). If the claim is then refused, the name remains
and does no harm: names are never deleted, and one without allocations is not shown.
"""

from collections.abc import Collection, Container, Sequence

import sqlalchemy as sa

from treeclaim.store.database.transactions import (
    PrerequisiteError,
    ReadTransaction,
    WriteTransaction,
)
from treeclaim.store.operations.allocations.lookup import NAMES, OwnerName

_FIND = {
    table: sa.select(table.c.id).where(name == sa.bindparam("wanted"))
    for table, name in NAMES.items()
}


def require(
    transaction: ReadTransaction, wanted: Collection[OwnerName], known: Container[OwnerName]
) -> None:
    """Check that names exist before anything is locked.

    Args:
        transaction: The transaction of the write that needs them; it must be able to start again.
        wanted: The names.
        known: The names that were found already.

    Raises:
        PrerequisiteError: if some do not exist; they are created then, and the write begins anew.
    """
    unknown = [key for key in wanted if key not in known]
    # A collation may match another spelling.
    missing = [(table, name) for table, name in unknown if find(transaction, table, name) is None]
    if missing:
        raise PrerequisiteError(lambda later_transaction: _insert(later_transaction, missing))


def find(transaction: ReadTransaction, table: sa.Table, name: str) -> int | None:
    """Return the id of a name, None if it does not exist."""
    row_id = transaction.scalar(_FIND[table], wanted=name)
    return None if row_id is None else int(row_id)


def _insert(transaction: WriteTransaction, missing: Sequence[OwnerName]) -> None:
    """Insert names; if another transaction is first, this one runs again and finds them."""
    for table, name in sorted(missing, key=lambda key: (key[0].name, key[1])):
        if find(transaction, table, name) is None:
            transaction.execute(
                sa.insert(table), **{NAMES[table].name: name, "created_at": transaction.now}
            )
