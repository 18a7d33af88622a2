# SPDX-License-Identifier: Apache-2.0
"""Display names of aggregates, which are neither in the change feed nor in the Placement API."""

import json
from collections.abc import Mapping, Sequence

import orjson

from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, chunks
from treeclaim.store.schema.tables import aggregate_names

_DELETE = "DELETE FROM treeclaim_aggregate_names WHERE uuid IN :uuids"
_INSERT = compile_insert(aggregate_names)
_ROWS = "SELECT uuid, name FROM treeclaim_aggregate_names"
_SELECT_PAGE = f"{_ROWS} WHERE uuid > :after ORDER BY uuid LIMIT :most"
_SELECT_NAMED = f"{_ROWS} WHERE uuid IN :uuids"


def change_names(transaction: WriteTransaction, names: Mapping[str, str | None]) -> None:
    """Set the names of aggregates, by normalized UUID; None removes a name."""
    uuids = sorted(names)
    for chunk in chunks(uuids):
        transaction.change(_DELETE, uuids=chunk)
    transaction.change_each(
        _INSERT,
        (
            {"uuid": uuid, "name": json.dumps(name)}
            for uuid in uuids
            if (name := names[uuid]) is not None
        ),
    )


def load_page(transaction: ReadTransaction, after: str, most: int) -> dict[str, str]:
    """Return the names of the first `most` aggregates after a UUID, in order of UUIDs."""
    rows = transaction.rows(_SELECT_PAGE, after=after, most=most)
    return {row.uuid: orjson.loads(row.name) for row in rows}


def load_aggregate_names(transaction: ReadTransaction, uuids: Sequence[str]) -> dict[str, str]:
    """Return the names of those aggregates that have one, in order of UUIDs."""
    rows = transaction.rows_in_chunks(_SELECT_NAMED, uuids=sorted(set(uuids)))
    return {
        uuid: orjson.loads(name) for uuid, name in sorted((row.uuid, row.name) for row in rows)
    }
