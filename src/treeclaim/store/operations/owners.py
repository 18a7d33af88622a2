# SPDX-License-Identifier: Apache-2.0
"""Names of projects, users and consumer types, made before the claims that first mention them.

A name is unique, so whoever inserts it second waits until the first one's transaction ends. Were it
the claim's own, the first claim of a project would hold up all others of that project for as long
as it waits for its providers. So a name is committed first, in a short transaction, as existing
deployments have it (contract page 70, section 1.1). One that is left behind by a claim that is then
refused is harmless: names are never deleted, and nothing shows one that nobody holds anything for.
"""

from collections.abc import Collection, Container, Sequence

import sqlalchemy as sa

from treeclaim.model.claim import ConsumerClaim, ConsumerType
from treeclaim.store.database.transactions import (
    PrepareFirstError,
    ReadTransaction,
    WriteTransaction,
)
from treeclaim.store.operations.claim_lookup import NAMES
from treeclaim.store.schema.tables import consumer_types, projects, users

Key = tuple[sa.Table, str]
"""A name and the table where it is, or is to be."""

_FIND = {
    table: sa.select(table.c.id).where(name == sa.bindparam("wanted"))
    for table, name in NAMES.items()
}


def named_by(claims: Sequence[ConsumerClaim]) -> list[Key]:
    """Return the names that some claims need; one that empties a consumer needs none."""
    found: dict[Key, None] = {}
    for claim in claims:
        if not claim.allocations:
            continue
        found[projects, claim.project_id] = None
        found[users, claim.user_id] = None
        if not isinstance(claim.consumer_type, ConsumerType):
            found[consumer_types, claim.consumer_type] = None
    return list(found)


def require(transaction: ReadTransaction, wanted: Collection[Key], known: Container[Key]) -> None:
    """See to it that names exist before anything is locked.

    Args:
        transaction: Of the write that needs them; nothing must be lost if it begins anew.
        wanted: The names.
        known: Those that were found already.

    Raises:
        PrepareFirstError: if some do not exist; they are made then, and the write begins anew.
    """
    unknown = [key for key in wanted if key not in known]
    # A collation may know a name in another spelling.
    missing = [(table, name) for table, name in unknown if find(transaction, table, name) is None]
    if missing:
        raise PrepareFirstError(lambda short: _make(short, missing))


def find(transaction: ReadTransaction, table: sa.Table, name: str) -> int | None:
    """Return the id of a name, None if nothing has it."""
    found = transaction.scalar(_FIND[table], wanted=name)
    return None if found is None else int(found)


def _make(transaction: WriteTransaction, missing: Sequence[Key]) -> None:
    """Insert names; if another transaction is first, this one runs again and finds them."""
    for table, name in sorted(missing, key=lambda key: (key[0].name, key[1])):
        if find(transaction, table, name) is None:
            transaction.execute(
                sa.insert(table), **{NAMES[table].name: name, "created_at": transaction.now}
            )
