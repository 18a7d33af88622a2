# SPDX-License-Identifier: Apache-2.0
"""Creates projects, users and consumer types before the claims that first name them.

A name is unique, so the second transaction that inserts it waits until the first one ends. If that
were the claim's own, the first claim of a project would delay all others of that project while it
waits for its providers. So a name is committed first, in a short transaction, as existing
deployments have it (contract page 70, section 1.1). If the claim is then refused, the name remains
and does no harm: names are never deleted, and one without allocations is not shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import sqlalchemy as sa

from treeclaim.model.claim import ConsumerClaim, Omission
from treeclaim.store.database.transactions import (
    PrerequisiteError,
    ReadTransaction,
    WriteTransaction,
)
from treeclaim.store.operations.allocations.lookup import NAMES, OwnerName
from treeclaim.store.schema.tables import consumer_types

_FIND = {
    table: sa.select(table.c.id).where(name == sa.bindparam("wanted"))
    for table, name in NAMES.items()
}


class OwnerIds:
    """Ids of projects, users and consumer types by name; its transaction must be able to start again."""

    def __init__(
        self,
        transaction: WriteTransaction,
        known: Mapping[OwnerName, int] = MappingProxyType({}),
    ) -> None:
        self._transaction = transaction
        self._known = dict(known)

    def require(self, names: Iterable[OwnerName]) -> None:
        """Check that names exist before anything is locked.

        Raises:
            PrerequisiteError: if some do not exist; they are created then, and the write begins anew.
        """
        missing = []
        for key in names:
            if key not in self._known:
                # A collation may match another spelling.
                owner_id = _find(self._transaction, *key)
                if owner_id is None:
                    missing.append(key)
                else:
                    self._known[key] = owner_id
        if missing:
            raise PrerequisiteError(lambda later_transaction: _insert(later_transaction, missing))

    def id_of(self, table: sa.Table, name: str) -> int:
        """Return the id of a name; as `require`."""
        self.require([(table, name)])
        return self._known[table, name]

    def type_of(self, claim: ConsumerClaim, present: int | None) -> int | None:
        """Return the id of a claim's consumer type, the present one if the claim names none."""
        if isinstance(claim.consumer_type, Omission):
            return present
        return self.id_of(consumer_types, claim.consumer_type)


def _find(transaction: ReadTransaction, table: sa.Table, name: str) -> int | None:
    row_id = transaction.scalar(_FIND[table], wanted=name)
    return None if row_id is None else int(row_id)


def _insert(transaction: WriteTransaction, missing: Sequence[OwnerName]) -> None:
    """Insert names; if another transaction is first, this one runs again and finds them."""
    for table, name in sorted(missing, key=lambda key: (key[0].name, key[1])):
        if _find(transaction, table, name) is None:
            transaction.execute(
                sa.insert(table), **{NAMES[table].name: name, "created_at": transaction.now}
            )
