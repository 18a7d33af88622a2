# SPDX-License-Identifier: Apache-2.0
"""Full reads have a deadline for all statements together, and one for each statement."""

import pytest

from tests.service import fresh_database_on
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.timeouts import Timeouts

SHORT = Timeouts(statement=1, load=1)

_COUNTED = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {}) SELECT count(*) FROM numbers"

LONG = {
    "sqlite": _COUNTED.format(10**12),
    "postgresql": "SELECT pg_sleep(60)",
    "mysql": "SELECT sleep(60)",
}
"""Statements that take a minute and more, by dialect."""


@pytest.fixture
def hasty(database_url):
    """A store with one connection, and a timeout of one second for statements of full reads."""
    new_store = Store(DatabaseSettings(database_url, timeouts=SHORT))
    yield new_store
    new_store.close()


@pytest.mark.slow
def test_full_read_sends_no_statement_after_its_deadline(hasty):
    """Each of many short statements is in time, but not all together."""

    def read_endlessly(transaction):
        transaction.extend_timeouts()
        while True:
            transaction.scalar("SELECT 1")

    with pytest.raises(StoreUnavailableError):
        hasty.read(read_endlessly)
    assert hasty.read(lambda transaction: transaction.scalar("SELECT 1")) == 1


@pytest.mark.slow
def test_long_statement_of_full_read_is_cancelled(hasty):
    def long(transaction):
        transaction.extend_timeouts()
        return transaction.scalar(LONG[hasty.engine.dialect.name])

    with pytest.raises(StoreUnavailableError) as raised:
        hasty.read(long)
    assert "took too long" in str(raised.value)


def test_sqlite_deadline_ends_with_its_transaction(tmp_path):
    """The next transaction on the connection is not interrupted."""
    statement = _COUNTED.format(300_000)

    def too_late(transaction):
        transaction.extend_timeouts()
        transaction.scalar(statement)

    with fresh_database_on("sqlite", tmp_path) as url:
        new_store = Store(DatabaseSettings(url, timeouts=Timeouts(statement=0, load=0)))
        with pytest.raises(StoreUnavailableError):
            new_store.read(too_late)
        assert new_store.read(lambda transaction: transaction.scalar(statement)) == 300_000
        new_store.close()
