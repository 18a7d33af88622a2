# SPDX-License-Identifier: Apache-2.0
"""Promises of the store on every database: clear errors, and upkeep by itself."""

import pytest

from tests.store.hosts import create_host
from treeclaim.model.changes import Cursor
from treeclaim.model.errors import (
    ConcurrentChangeError,
    StoreUnavailableError,
)
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.transactions import RetryTransactionError
from treeclaim.store.operations.providers import providers


def test_operation_with_constant_conflicts_gives_up(store):
    tried = []

    def unlucky(_transaction):
        tried.append(1)
        raise RetryTransactionError

    with pytest.raises(ConcurrentChangeError):
        store.write(unlucky)
    assert len(tried) > 1


def test_missing_database_raises_unavailable_error(tmp_path):
    lost = Store(DatabaseSettings(f"sqlite:///{tmp_path / 'missing' / 'placement.db'}"))
    with pytest.raises(StoreUnavailableError):
        create_host(lost, name="nowhere")
    with pytest.raises(StoreUnavailableError):
        lost.changes(Cursor((), ()))
    lost.close()


def test_two_spellings_of_an_aggregate_are_accepted(store):
    host = create_host(store, name="host")
    spellings = ["AAAAAAAA-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000001"]
    store.write(providers.replace_aggregates, host, spellings, 0)
    with Replica(store).current() as forest:
        result = forest.aggregates(forest.row_of(host))
    # A collation that knows no case takes them for the same.
    assert set(result) <= set(spellings)
    assert len(result) in {1, 2}
