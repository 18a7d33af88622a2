# SPDX-License-Identifier: Apache-2.0
"""Mixes of requests, by name (contract page 101, section 2). They are not in the change feed."""

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
_HAS_NAME = mixes.c.name == sa.bindparam("old_name")
_INSERT = sa.insert(mixes)
_UPDATE = sa.update(mixes).where(_HAS_NAME)
_DELETE = sa.delete(mixes).where(_HAS_NAME)


def put(transaction: WriteTransaction, name: str, body: Body) -> None:
    """Create or replace a mix, given its document.

    Raises:
        MixesFullError: if `MOST_MIXES` other mixes exist.
        RetryTransactionError: if a concurrent transaction deletes it.
    """
    slots = {row.name: row.slot for row in transaction.rows(_SLOTS)}
    written = ascii_json(body)
    if name in slots:
        if not transaction.execute(_UPDATE, old_name=name, body=written).rowcount:
            raise RetryTransactionError
        return
    free_slots = set(range(MOST_MIXES)).difference(slots.values())
    if not free_slots:
        raise MixesFullError(MOST_MIXES)
    transaction.execute(_INSERT, name=name, slot=min(free_slots), body=written)


def delete(transaction: WriteTransaction, name: str) -> None:
    """Delete a mix; raise `MixNotFoundError` for an unknown name."""
    if not transaction.execute(_DELETE, old_name=name).rowcount:
        raise MixNotFoundError(name)


def load_texts(transaction: ReadTransaction, names: Sequence[str]) -> dict[str, str]:
    """Return the documents of existing mixes as JSON, by name; one query."""
    return {row.name: row.body for row in transaction.rows(_NAMED, names=list(names))}


def load_mixes(transaction: ReadTransaction) -> dict[str, Body]:
    """Return all mixes, in order of their names."""
    body_by_name = {row.name: orjson.loads(row.body) for row in transaction.rows(_ALL)}
    return dict(sorted(body_by_name.items()))
