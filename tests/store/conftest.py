# SPDX-License-Identifier: Apache-2.0
"""An empty database on each of the three systems."""

import pytest

from tests.databases import KINDS, empty_database
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.schema import revisions as schema


@pytest.fixture(params=KINDS)
def database_url(request, tmp_path):
    """The URL of an empty database."""
    with empty_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def store(database_url):
    """A store with schema and standard names."""
    made = Store(DatabaseSettings(database_url))
    schema.sync(made.engine)
    made.write(standard_names.sync_standard_names)
    yield made
    made.close()
