# SPDX-License-Identifier: Apache-2.0
"""Statements on each driver: lists of any length, values of any kind, and deferred writes."""

import datetime as dt
import uuid

import pytest
import sqlalchemy as sa

from treeclaim.model.errors import ConcurrentChangeError
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.driver import DriverStatement, send
from treeclaim.store.database.failures import Failure, classify_failure
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.schema.tables import projects

AT = dt.datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - as the tables hold times
TEXTS = [
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
INSERT = compile_insert(projects)
RENAME = "UPDATE projects SET external_id = :after WHERE external_id = :before"
NAMES = "SELECT external_id FROM projects ORDER BY external_id"
FIND = """
SELECT external_id FROM projects WHERE external_id IN :names AND NOT (external_id IN :others)
"""
NAME_COUNT = 5000


def insert(store, names):
    """Insert projects with one statement."""
    with store.engine.begin() as connection:
        transaction = WriteTransaction(connection)
        transaction.change_each(
            INSERT, ({"external_id": name, "created_at": AT} for name in names)
        )
        transaction.flush()


def load_projects(store):
    """Return the names and times of the committed projects in the order of insertion."""
    columns = sa.select(projects.c.external_id, projects.c.created_at).order_by(projects.c.id)
    with store.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(columns)]


def load_names(store):
    """Return the names of the committed projects."""
    return {name for name, _ in load_projects(store)}


def test_lists_and_times_are_parameters(store):
    names = [f"{number:04}" for number in range(NAME_COUNT)]
    insert(store, names)
    by_names = "SELECT external_id FROM projects WHERE external_id IN :names AND created_at <= :at"

    def select_names(statement, **values):
        return {row.external_id for row in transaction.rows(statement, **values)}

    with store.engine.begin() as connection:
        transaction = ReadTransaction(connection)
        for length in (0, 1, 2, 3, 17, 1000, 4096, 4097, NAME_COUNT, 2):
            wanted_names = names[:length]
            for at, count in ((AT, length), (AT - dt.timedelta(seconds=1), 0)):
                assert select_names(by_names, names=wanted_names, at=at) == set(names[:count])
            for other_names in (names[1:2], names[:5:2]):
                assert select_names(FIND, names=wanted_names, others=other_names) == set(
                    wanted_names
                ) - set(other_names)


@pytest.mark.parametrize("sql_mode", ["TRADITIONAL", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"])
def test_written_values_round_trip(store, sql_mode):
    if store.engine.dialect.name == "mysql":

        @sa.event.listens_for(store.engine, "checkout")
        def _set_mode(connection, *_):
            with connection.cursor() as cursor:
                cursor.execute(f"SET SESSION sql_mode = '{sql_mode}'")

    insert(store, TEXTS)
    assert load_projects(store) == [(text, AT) for text in TEXTS]


def test_deferred_writes_keep_their_order_and_precede_queries(store):
    with store.engine.begin() as connection:
        transaction = WriteTransaction(connection)
        transaction.change_each(INSERT, ({"external_id": name} for name in "ab"))
        transaction.change(RENAME, rows=1, before="b", after="c")
        assert [row.external_id for row in transaction.rows(NAMES)] == ["a", "c"]
        transaction.change(RENAME, rows=1, before="c", after="d")
        transaction.flush()
    assert load_names(store) == {"a", "d"}


def test_unexpected_row_count_rolls_back_and_retries(store):
    attempts = []

    def rename(transaction):
        name = str(uuid.uuid4())
        attempts.append(name)
        transaction.change_each(INSERT, [{"external_id": name}])
        transaction.change(RENAME, rows=1, before=name if len(attempts) > 1 else "-", after="c")
        transaction.touch_catalogue()

    store.write(rename)
    assert len(attempts) == 2
    assert load_names(store) == {"c"}


def test_operation_with_constant_conflicts_gives_up(store):
    tried = []

    def unlucky(_transaction):
        tried.append(1)
        raise RetryTransactionError

    with pytest.raises(ConcurrentChangeError):
        store.write(unlucky)
    assert len(tried) > 1


def test_query_reports_that_a_deferred_write_changed_another_number_of_rows(store):
    with pytest.raises(RetryTransactionError), store.engine.begin() as connection:
        transaction = WriteTransaction(connection)
        transaction.change(RENAME, rows=1, before="nobody", after="c")
        transaction.rows(NAMES)


def test_refused_statement_rolls_back_and_connection_stays_usable(store):
    for _ in range(3):
        with pytest.raises(sa.exc.IntegrityError) as caught, store.engine.begin() as connection:
            transaction = WriteTransaction(connection)
            for _ in "ab":
                transaction.change_each(INSERT, [{"external_id": "a"}])
            transaction.change(RENAME, before="a", after="b")
            transaction.flush()
        assert classify_failure(caught.value) is Failure.CONFLICT
    assert load_names(store) == set()


class OwnError(Exception):
    """An error of the program."""


def _raise(*_):
    raise OwnError


def test_program_errors_are_not_wrapped_as_database_errors(store):
    with store.engine.connect() as connection, pytest.raises(OwnError):
        send(connection, DriverStatement("SELECT 1", rows=_raise))
