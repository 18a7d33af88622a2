# SPDX-License-Identifier: Apache-2.0
"""Checks the character sets of text columns, and loads the inventory once as a worker does."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from treeclaim.store.database.failures.kinds import cause_of
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.providers.some_providers import load_catalogue
from treeclaim.store.reading.providers.whole import whole_inventory
from treeclaim.store.schema.tables import own_tables, placement
from treeclaim.store.takeover.findings import Finding, failed, passed, warned

_CHARACTER_SET = "character set"
_INVENTORY = "inventory"
_UNICODE = {"utf8", "utf8mb3", "utf8mb4"}
_COLUMNS = sa.text(
    "SELECT table_name AS name, character_set_name AS charset FROM information_schema.columns "
    "WHERE table_schema = DATABASE() AND character_set_name IS NOT NULL "
    "AND table_name IN :tables"
).bindparams(sa.bindparam("tables", sorted(placement.tables), expanding=True))


def findings(connection: Connection, present: Mapping[str, AbstractSet[str]]) -> Iterator[Finding]:
    """Check the character sets, and load the inventory if the tables that it needs are complete.

    Args:
        connection: To the database.
        present: Names of the present columns by table.
    """
    if connection.dialect.name == "mysql":
        yield from _character_sets(connection)
    if _is_complete(placement, present):
        yield _inventory(connection, has_own_tables=_is_complete(own_tables, present))


def _is_complete(tables: sa.MetaData, present: Mapping[str, AbstractSet[str]]) -> bool:
    return all(
        set(table.columns.keys()) <= present.get(name, set())
        for name, table in tables.tables.items()
    )


def _character_sets(connection: Connection) -> Iterator[Finding]:
    tables: dict[str, set[str]] = {}
    for row in connection.execute(_COLUMNS):
        tables.setdefault(str(row.charset), set()).add(str(row.name))
    if not tables:
        return
    narrow = {charset: names for charset, names in tables.items() if charset not in _UNICODE}
    if not narrow:
        yield passed(_CHARACTER_SET, f"{', '.join(sorted(tables))} in all tables of Placement")
        return
    words = "; ".join(
        f"{charset} in {', '.join(sorted(names))}" for charset, names in sorted(narrow.items())
    )
    yield warned(
        _CHARACTER_SET,
        f"{words}: a name with a character outside of it cannot be stored",
        "To store any name, run ALTER TABLE ... CONVERT TO CHARACTER SET utf8mb3 for each of them.",
    )


def _inventory(connection: Connection, *, has_own_tables: bool) -> Finding:
    transaction = ReadTransaction(connection)
    try:
        load_catalogue(transaction)
        inventory = whole_inventory(transaction, has_own_tables=has_own_tables)
    except (SQLAlchemyError, ArithmeticError, TypeError, ValueError) as error:
        return failed(
            _INVENTORY,
            f"it cannot be loaded: {cause_of(error)}",
            "Correct the rows that the message names; without an inventory, no read is answered.",
        )
    return passed(_INVENTORY, f"{len(inventory.id)} providers were loaded")
