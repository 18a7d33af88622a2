# SPDX-License-Identifier: Apache-2.0
"""Database servers that a test may harm, and some that it may not."""

import pytest

from tests.conftest import kinds_wanted
from tests.databases import KINDS, MissingServerError, empty_database, new_server_of

SERVERS = KINDS[1:]


def pytest_generate_tests(metafunc):
    """Run tests with a `database` on each kind that is wanted."""
    if "database" in metafunc.fixturenames:
        metafunc.parametrize("database", kinds_wanted(metafunc.config), indirect=True)


@pytest.fixture
def database(request, tmp_path):
    """The URL of an empty database on a server that is not to be harmed."""
    with empty_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=SERVERS)
def own_server(request):
    """A database server that belongs to the test alone."""
    try:
        server = new_server_of(request.param)
    except MissingServerError as missing:
        pytest.skip(str(missing))
    yield server
    server.stop()
