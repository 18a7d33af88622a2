# SPDX-License-Identifier: Apache-2.0
"""Mixes of requests, by name (contract page 101, section 2).

Nothing of them is in the change feed: who answers with a mix reads it from here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import sqlalchemy as sa

from treeclaim.model.extension.errors import MixesFullError, MixNotFoundError
from treeclaim.store.database.compiled import CompiledStatement, bind_list
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.operations.allocations.kept_requests import ascii_json
from treeclaim.store.schema.tables import MOST_MIXES, mixes

Body = Mapping[str, Any]
"""The stored document of a mix."""

_SLOTS = sa.select(mixes.c.name, mixes.c.slot)
_ALL = sa.select(mixes.c.name, mixes.c.body)
_NAMED = CompiledStatement(
    sa.select(mixes.c.name, mixes.c.body).where(mixes.c.name.in_(bind_list("names")))
)
_IS_IT = mixes.c.name == sa.bindparam("wanted")
_INSERT = sa.insert(mixes)
_UPDATE = sa.update(mixes).where(_IS_IT)
_DELETE = sa.delete(mixes).where(_IS_IT)


def put(transaction: WriteTransaction, name: str, body: Body) -> None:
    """Create or replace a mix, given its document as clients see it.

    Raises:
        MixesFullError: if there are as many others as there may be.
        RetryTransactionError: if it is deleted meanwhile.
    """
    slots = {row.name: row.slot for row in transaction.rows(_SLOTS)}
    written = ascii_json(body)
    if name in slots:
        if not transaction.execute(_UPDATE, wanted=name, body=written).rowcount:
            raise RetryTransactionError
        return
    free_slots = set(range(MOST_MIXES)).difference(slots.values())
    if not free_slots:
        raise MixesFullError(MOST_MIXES)
    transaction.execute(_INSERT, name=name, slot=min(free_slots), body=written)


def delete(transaction: WriteTransaction, name: str) -> None:
    """Delete a mix; raise `MixNotFoundError` if there is none of this name."""
    if not transaction.execute(_DELETE, wanted=name).rowcount:
        raise MixNotFoundError(name)


def texts(transaction: ReadTransaction, names: Sequence[str]) -> dict[str, str]:
    """Return the documents of those mixes of some names that exist, as JSON; by one query."""
    return {row.name: row.body for row in transaction.rows(_NAMED, names=list(names))}


def every(transaction: ReadTransaction) -> dict[str, Body]:
    """Return all mixes, by name in order."""
    body_by_name = {row.name: orjson.loads(row.body) for row in transaction.rows(_ALL)}
    return dict(sorted(body_by_name.items()))
