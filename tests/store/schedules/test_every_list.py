# SPDX-License-Identifier: Apache-2.0
"""Statements of all worlds with lists of various lengths."""

from types import SimpleNamespace

from tests.store.schedules.worlds import WORLDS
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.driver import send

VALUES = 5000
"""Most values in all lists of a statement together."""

STATEMENTS = 50
"""Fewest statements with lists that the worlds execute."""


def lists_among(values):
    """Return the values of list parameters by name, without empty lists."""
    return {
        name: list(value)
        for name, value in values.items()
        if isinstance(value, list | tuple) and value
    }


def with_length(items, length):
    """Return the first items, or the items and values that are not in the database."""
    unknown = int if isinstance(items[0], int) else "unknown {}".format
    return [*items, *(unknown(-number) for number in range(1, 1 + length))][:length]


def execute(store, statement, values):
    """Return the rows of a query and the number of changed rows; the transaction is rolled back."""
    with store.engine.connect() as connection, connection.begin() as transaction:
        rows, changed = send(connection, statement.bind(connection.dialect, values))
        transaction.rollback()
    return sorted(map(str, rows)), changed


def test_statement_takes_lists_of_any_length(place, monkeypatch):
    bind = CompiledStatement.bind
    values_by_key = {}

    def record(statement, dialect, values):
        if lists := lists_among(values):
            values_by_key.setdefault((statement, *lists), values)
        return bind(statement, dialect, values)

    executed = set()
    for world in WORLDS.values():
        for script in world.scripts.values():
            place.fill(place.script(world))
            with monkeypatch.context() as patch:
                patch.setattr(CompiledStatement, "bind", record)
                script.run(SimpleNamespace(store=place.store, read=lambda: None))
            for key in values_by_key.keys() - executed:
                compare_lengths(place.store, key[0], values_by_key[key])
            executed |= values_by_key.keys()
    assert len({statement for statement, *_ in executed}) >= STATEMENTS


def compare_lengths(store, statement, values):
    """Compare a statement with shorter lists, and with longer lists that must not change the result."""
    rows, changed = execute(store, statement, values)
    lists = lists_among(values)
    for length in (0, 1, 2, VALUES // len(lists)):
        resized = {name: with_length(items, length) for name, items in lists.items()}
        resized_rows, resized_changed = execute(store, statement, values | resized)
        assert len(resized_rows) <= len(rows)
        assert resized_changed <= changed
        if length >= max(map(len, lists.values())):
            assert (resized_rows, resized_changed) == (rows, changed)
