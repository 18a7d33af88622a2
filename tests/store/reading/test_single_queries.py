# SPDX-License-Identifier: Apache-2.0
"""A read of one query sends no more than that where the database needs no more for a snapshot."""

import uuid

import pytest
import sqlalchemy as sa

from tests.databases import EACH_DATABASE
from tests.service import fresh_database_on
from treeclaim.model.errors import ProviderNotFoundError, StoreUnavailableError
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.providers import providers
from treeclaim.store.reading.allocations import of_provider


@pytest.fixture(params=EACH_DATABASE)
def store(request, tmp_path):
    """A store with its schema."""
    with fresh_database_on(request.param, tmp_path) as url:
        store = Store(DatabaseSettings(url))
        yield store
        store.close()


def test_a_query_of_sqlite_is_sent_without_a_transaction_around_it(store):
    host = str(uuid.uuid4())
    store.write(providers.create, uuid=host, name="host", parent_uuid=None)
    sent = []
    sa.event.listen(store.engine, "before_cursor_execute", lambda *told: sent.append(told[2]))
    alone = store.read_at_once(of_provider, host)
    assert store.engine.dialect.name != "sqlite" or len(sent) == 1
    assert alone == store.read(of_provider, host)


def test_what_fails_fails_as_in_a_transaction(store):
    with pytest.raises(ProviderNotFoundError):
        store.read_at_once(of_provider, str(uuid.uuid4()))
    sa.event.listen(store.engine, "before_cursor_execute", _fail, retval=False)
    with pytest.raises(StoreUnavailableError):
        store.read_at_once(of_provider, str(uuid.uuid4()))
    sa.event.remove(store.engine, "before_cursor_execute", _fail)
    with pytest.raises(ProviderNotFoundError):
        store.read_at_once(of_provider, str(uuid.uuid4()))


def _fail(connection, *_):
    raise sa.exc.OperationalError(None, None, connection.dialect.loaded_dbapi.OperationalError())
