# SPDX-License-Identifier: Apache-2.0
"""Mixes of requests, by name (contract page 101, section 2). They are not in the change feed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from treeclaim.model.errors import NotFoundError
from treeclaim.model.extension.errors import MixesFullError
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.schema.tables import MOST_MIXES, mixes

Body = Mapping[str, Any]
"""The document of a mix."""

_SELECT_SLOTS = "SELECT name, slot FROM treeclaim_mixes"
_SELECT_ALL = "SELECT name, body FROM treeclaim_mixes"
_SELECT_NAMED = f"{_SELECT_ALL} WHERE name IN :names"
_INSERT = compile_insert(mixes)
_UPDATE = "UPDATE treeclaim_mixes SET body = :body WHERE name = :old_name"
_DELETE = "DELETE FROM treeclaim_mixes WHERE name = :old_name"


def put(transaction: WriteTransaction, name: str, body: Body) -> None:
    """Create or replace a mix; raise `MixesFullError` if `MOST_MIXES` other mixes exist."""
    slots = {row.name: row.slot for row in transaction.rows(_SELECT_SLOTS)}
    text = json.dumps(body, separators=(",", ":"))
    if name in slots:
        if not transaction.execute(_UPDATE, old_name=name, body=text).rowcount:
            # A concurrent transaction has deleted it.
            raise RetryTransactionError
        return
    free_slots = set(range(MOST_MIXES)).difference(slots.values())
    if not free_slots:
        raise MixesFullError(MOST_MIXES)
    transaction.execute(_INSERT, name=name, slot=min(free_slots), body=text)


def delete(transaction: WriteTransaction, name: str) -> None:
    """Delete a mix; raise `NotFoundError` for an unknown name."""
    if not transaction.execute(_DELETE, old_name=name).rowcount:
        raise NotFoundError(f"No mix named {name} found.")


def load_texts(transaction: ReadTransaction, names: Sequence[str]) -> dict[str, str]:
    """Return the documents of existing mixes as JSON texts, by name."""
    return {row.name: row.body for row in transaction.rows(_SELECT_NAMED, names=list(names))}


def load_mixes(transaction: ReadTransaction) -> dict[str, Body]:
    """Return all mixes, in order of their names."""
    body_by_name = {row.name: orjson.loads(row.body) for row in transaction.rows(_SELECT_ALL)}
    return dict(sorted(body_by_name.items()))
