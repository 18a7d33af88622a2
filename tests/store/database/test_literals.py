# SPDX-License-Identifier: Apache-2.0
"""Rows that are written as literals are kept as what they were, and packed rows are read so."""

import datetime as dt
import uuid
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa

from treeclaim.store.database import literals
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction
from treeclaim.store.schema.tables import inventories, projects, resource_providers

AT = dt.datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - as the tables hold times
NAMES = [
    "plain",
    "it's",
    'a "quoted" one',
    "back\\slash",
    "\\'",
    "ends in \\",
    "percent %s %(name)s",
    "line\nbreak\ttab\r",
    "naïve ☃",
    "\x01\x08\x0b\x1a\x1f\x7f\u2028",
    "",
    "'); DROP TABLE projects; --",
]
INSERT = CompiledStatement(sa.insert(projects).inline())
FIND = sa.select(projects.c.external_id).order_by(projects.c.id)


def insert(store, names):
    """Insert projects of these names together."""
    with store.engine.begin() as connection:
        transaction = WriteTransaction(connection)
        transaction.change_each(INSERT, ({"external_id": one, "created_at": AT} for one in names))
        transaction.flush()


@pytest.mark.parametrize("sql_mode", ["TRADITIONAL", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"])
def test_texts_are_kept_whatever_is_in_them(store, sql_mode):
    if store.engine.dialect.name == "mysql":

        @sa.event.listens_for(store.engine, "checkout")
        def _lent(connection, *_):
            with connection.cursor() as cursor:
                cursor.execute(f"SET SESSION sql_mode = '{sql_mode}'")

    insert(store, NAMES)
    with store.engine.connect() as connection:
        assert connection.execute(FIND).scalars().all() == NAMES


def test_an_insert_that_would_be_too_long_is_several(store, monkeypatch):
    monkeypatch.setattr(literals, "_LONGEST", 300)
    names = [f"{number} {'x' * 90}" for number in range(20)]
    insert(store, names)
    with store.engine.connect() as connection:
        assert connection.execute(FIND).scalars().all() == names


class Cursor:
    """A cursor of PyMySQL that sends nothing."""

    def __init__(self):
        self.sent = []
        self.asked = 0
        # What is not sent needs no server, but what a server would have said of itself.
        connection: Any = pymysql.Connection(defer_connect=True)
        connection.server_status = 0
        self._writer = connection.cursor()

    def mogrify(self, sql, values):
        """Escape values as PyMySQL does."""
        self.asked += 1
        return self._writer.mogrify(sql, values)

    def execute(self, sql):
        """Note what would be sent."""
        self.sent.append(sql)


def test_each_value_is_what_the_driver_writes():
    columns: list[list[Any]] = [
        [1, 2, 3],
        [None, None, None],
        [AT, AT, AT],
        ["a-b", "[1,2]", "c.d"],
        ["a'b", "\\", None],
        [1, True, 1.5],
        [0, None, 7],
    ]
    cursor = Cursor()
    literals.insert_rows(cursor, "INSERT INTO t VALUES ", columns)
    rows = zip(*columns, strict=True)
    written = (cursor.mogrify(f"({','.join(['%s'] * len(columns))})", row) for row in rows)
    assert cursor.sent == [f"INSERT INTO t VALUES {','.join(written)}"]


def test_the_driver_is_asked_for_what_all_rows_share_alone():
    many = range(3000)
    uuids = [str(uuid.UUID(int=number)) for number in many]
    columns: list[list[Any]] = [
        list(many),
        uuids,
        [AT] * len(many),
        [None] * len(many),
        [n % 3 for n in many],
    ]
    cursor = Cursor()
    literals.insert_rows(cursor, "INSERT INTO t VALUES ", columns)
    assert cursor.asked == 2


def test_packed_rows_are_what_the_same_query_finds(store):
    own = {"created_at": AT, "generation": 0}
    ratios = [1.0, 1.1, 16.0, 0.3333333, 1234.5, 1e-5]
    with store.engine.begin() as connection:
        for number, name in enumerate(NAMES, 1):
            row = {"id": number, "uuid": str(uuid.UUID(int=number)), "name": name or None, **own}
            connection.execute(sa.insert(resource_providers).values(row))
        units = dict.fromkeys(("total", "reserved", "min_unit", "max_unit", "step_size"), 1)
        for number, ratio in enumerate(ratios, 1):
            row = {"resource_provider_id": number, "resource_class_id": 0, **units}
            connection.execute(sa.insert(inventories).values(row | {"allocation_ratio": ratio}))
    some = sa.bindparam("some", expanding=True)
    query = (
        sa.select(
            resource_providers.c.name,
            resource_providers.c.parent_provider_id,
            resource_providers.c.id,
            sa.func.coalesce(inventories.c.total, 0).label("amount"),
            inventories.c.allocation_ratio,
        )
        .outerjoin(inventories, inventories.c.resource_provider_id == resource_providers.c.id)
        .where(resource_providers.c.id.in_(some))
        .order_by(resource_providers.c.id)
    )
    with store.engine.begin() as connection:
        transaction = ReadTransaction(connection)
        for ids in (range(1, 1 + len(NAMES)), [], [2], [99]):
            wanted = [tuple(row) for row in transaction.rows(query, some=list(ids))]
            packed = CompiledStatement(query, is_packed=True)
            found = transaction.rows(packed, some=list(ids))
            assert [tuple(row) for row in found] == wanted
            assert [row.amount for row in found] == [row[3] for row in wanted]
