# SPDX-License-Identifier: Apache-2.0
"""Database servers that a test may harm, and some that it may not."""

import pytest

from tests.databases import EACH_DATABASE, EACH_SERVER, empty_database, new_server_of


def pytest_generate_tests(metafunc):
    """Run tests with a `database` on each kind that is wanted."""
    if "database" in metafunc.fixturenames:
        metafunc.parametrize("database", EACH_DATABASE, indirect=True)


@pytest.fixture
def database(request, tmp_path):
    """The URL of an empty database on a server that is not to be harmed."""
    with empty_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=EACH_SERVER)
def own_server(request):
    """A database server that belongs to the test alone."""
    server = new_server_of(request.param)
    yield server
    server.stop()
