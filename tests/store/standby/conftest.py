# SPDX-License-Identifier: Apache-2.0
"""A primary and a standby, and stores that know one of them or both."""

from contextlib import closing

import pytest

from tests.conftest import kinds_wanted
from tests.databases import MissingServerError
from tests.store.standby.pairs import Pair
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.standby import breaker

SOON = 0.2


def pytest_generate_tests(metafunc):
    """Run on each kind of server that has standbys."""
    for name in {"shared_pair", "own_pair"} & set(metafunc.fixturenames):
        kinds = [kind for kind in kinds_wanted(metafunc.config) if kind != "sqlite"]
        metafunc.parametrize(
            name, kinds, indirect=True, scope="module" if name == "shared_pair" else None
        )


def _pair(kind):
    try:
        pair = Pair(kind)
    except MissingServerError as missing:
        pytest.skip(str(missing))
    yield pair
    pair.stop()


@pytest.fixture(scope="module")
def shared_pair(request):
    """Both servers, shared by the tests of a module: each leaves them as they were."""
    yield from _pair(request.param)


@pytest.fixture
def own_pair(request):
    """Both servers, of one test alone."""
    yield from _pair(request.param)


@pytest.fixture
def pair(request):
    """The servers of the test."""
    name = "own_pair" if "own_pair" in request.fixturenames else "shared_pair"
    return request.getfixturevalue(name)


@pytest.fixture
def settings(pair):
    """The settings for a database on both."""
    with pair.database() as made:
        yield made


@pytest.fixture
def store(settings, monkeypatch):
    """A store that reads from both."""
    monkeypatch.setattr(breaker, "PROBE_SECONDS", SOON)
    with closing(Store(settings)) as made:
        yield made


@pytest.fixture
def other(settings):
    """Another machine, which knows of no standby."""
    with closing(Store(DatabaseSettings(settings.url))) as made:
        yield made
