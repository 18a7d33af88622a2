# SPDX-License-Identifier: Apache-2.0
"""Statements sent straight to the driver are reported, and fail, like those of SQLAlchemy."""

import pytest
import sqlalchemy as sa

from treeclaim.store.database.driver import Ready, send


@pytest.fixture
def connection():
    """A connection to a database in which there is nothing."""
    with sa.create_engine("sqlite://").connect() as connection:
        yield connection


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        (Ready("SELECT 1, 2"), [(1, 2)]),
        (Ready("CREATE TABLE numbers (number INTEGER)"), []),
        (Ready("SELECT ?", (3,)), [(3,)]),
    ],
)
def test_who_listens_is_told_before_a_statement_and_of_its_answer(connection, ready, expected):
    told = []
    for moment in ("before", "after"):

        def note(_connection, _cursor, sql, *_, moment=moment):
            told.append((moment, sql))

        sa.event.listen(connection, f"{moment}_cursor_execute", note)
    rows = send(connection, ready).rows
    assert told == [("before", ready.sql), ("after", ready.sql)]
    assert rows == expected


def test_what_the_database_does_not_do_is_told_to_who_handles_errors(connection):
    told = []
    sa.event.listen(connection.engine, "handle_error", told.append)
    with pytest.raises(sa.exc.OperationalError, match="nothing"):
        send(connection, Ready("SELECT * FROM nothing"))
    assert [type(context.original_exception).__name__ for context in told] == ["OperationalError"]


class OwnError(Exception):
    """An error that is none of a database."""


def _raise(*_):
    raise OwnError


def test_what_is_no_error_of_the_database_is_not_made_one(connection):
    with pytest.raises(OwnError):
        send(connection, Ready("SELECT 1", rows=_raise))
    sa.event.listen(connection, "before_cursor_execute", _raise)
    with pytest.raises(OwnError):
        send(connection, Ready("SELECT 1"))
