# SPDX-License-Identifier: Apache-2.0
"""A database of each kind."""

import pytest

from tests.databases import EACH_DATABASE, empty_database
from tests.service import fresh_database_on
from treeclaim.store import DatabaseSettings, Store


@pytest.fixture(params=EACH_DATABASE)
def database_kind(request):
    return request.param


@pytest.fixture
def empty_url(database_kind, tmp_path):
    with empty_database(database_kind, tmp_path) as url:
        yield url


@pytest.fixture
def database_url(database_kind, tmp_path):
    """The URL of a database with schema and standard names."""
    with fresh_database_on(database_kind, tmp_path) as url:
        yield url


@pytest.fixture
def store(database_url):
    new_store = Store(DatabaseSettings(database_url))
    yield new_store
    new_store.close()
