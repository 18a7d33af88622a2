# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all tests share."""

import gc
import os
import signal

import hypothesis
import pytest

from tests.databases import KINDS
from tests.extent import Extent
from tests.service import client_of, make_application

# What is judged automatically tries the same examples each time; people's runs try new ones.
# No example has a deadline: how long it takes says more of the machine than of the service.
hypothesis.settings.register_profile("judged", derandomize=True, deadline=None)
hypothesis.settings.register_profile("tried", deadline=None)
hypothesis.settings.load_profile("judged" if os.environ.get("CI") else "tried")

# Where the tests run in the background the signal of Ctrl-C is ignored, which what they start would
# inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    """Let the HTTP suites run on every database; on SQLite alone they take a third of the time."""
    parser.addoption(
        "--databases",
        choices=["sqlite", "all"],
        default="sqlite",
        help="databases under the HTTP conformance suites",
    )


def pytest_configure(config):
    """Let modules know how much this run tries."""
    Extent.everything = config.getoption("--databases") == "all"


LEFT_OUT = pytest.StashKey[int]()
"""How many tests a run does not make, which is said at its end."""


LONGEST = (
    "test_schedules.py",
    "test_schedules_on_mariadb.py",
    "test_takeover.py",
    "test_openstack_command.py",
    "test_waits.py",
    "test_serve.py",
    "test_galera.py",
    "test_recipes.py",
)
"""Files that take minutes; begun first, they do not keep a run waiting at its end."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session):
    """Collect thousands of tests without looking for garbage, and never look at them again.

    What a test does with `gc.collect` would take half a second each time, and what the collector
    does by itself a part of each test.
    """
    gc.disable()
    try:
        found = yield
        gc.collect()
        gc.freeze()
    finally:
        gc.enable()
    return found


def pytest_collection_modifyitems(config, items):
    """Leave what is slow, or needs another database, to the runs on all databases."""
    if config.getoption("--databases") == "all":
        items.sort(key=lambda item: item.path.name not in LONGEST)
        return
    kept = [item for item in items if not is_left_out(item)]
    left_out = [item for item in items if is_left_out(item)]
    config.stash[LEFT_OUT] = len(left_out)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def is_left_out(item):
    """Whether a test is slow, or one of a database that is a server."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return bool(item.get_closest_marker("slow")) or bool(
        set(KINDS[1:]) & set(map(str, parameters))
    )


def pytest_sessionfinish(session):
    """Let the first process of a run in several know."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take what one of several processes knows; all have collected the same tests."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter, config):
    """Say what was not run, and how to run it."""
    if left_out := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(
            f"NOT RUN: {left_out} tests that are slow, or need PostgreSQL, MariaDB, Keystone or another "
            "web server, and the requests at the edges of each schema. "
            "All: make test TEST_OPTIONS=--databases=all; .ci/run installs what they need."
        )


def kinds_wanted(config):
    """The kinds of database that the HTTP suites run on."""
    return KINDS if config.getoption("--databases") == "all" else KINDS[:1]


@pytest.fixture
def fresh_service(tmp_path_factory):
    """A function that starts a service on an empty database and returns a client for it."""
    clients = []

    def start(**overrides):
        client = client_of(make_application(tmp_path_factory.mktemp("service"), **overrides))
        clients.append(client)
        return client

    yield start
    for client in clients:
        client.close()
