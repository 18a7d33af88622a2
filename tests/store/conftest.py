# SPDX-License-Identifier: Apache-2.0
"""A database on each of the three systems."""

from pathlib import Path

import pytest

from tests.databases import KINDS, empty_database
from tests.sampling import HOLDS
from tests.service import fresh_database_on
from treeclaim.store import DatabaseSettings, Store

PAIRS = Path(__file__).with_name("schedules") / "pairs"


def pytest_collection_modifyitems(items):
    """Let all pairs of writes belong to a sample: what has no mark is of holds."""
    for item in items:
        if item.path.parent == PAIRS and not item.get_closest_marker("sampled"):
            item.add_marker(pytest.mark.sampled(HOLDS))


@pytest.fixture(params=KINDS)
def database_kind(request):
    """A system."""
    return request.param


@pytest.fixture
def empty_url(database_kind, tmp_path):
    """The URL of an empty database."""
    with empty_database(database_kind, tmp_path) as url:
        yield url


@pytest.fixture
def database_url(database_kind, tmp_path):
    """The URL of a database with schema and standard names."""
    with fresh_database_on(database_kind, tmp_path) as url:
        yield url


@pytest.fixture
def store(database_url):
    """A store on that."""
    made = Store(DatabaseSettings(database_url))
    yield made
    made.close()
