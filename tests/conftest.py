# SPDX-License-Identifier: Apache-2.0
"""Shared fixtures, the selection of tests by tier, and the order and reports of a run."""

import gc
import os
import secrets
import signal
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

from tests import authorities
from tests.isolation import Isolation
from tests.resources import FIXTURES, Running, in_quick_tier, request_marked, requested_by
from tests.service import client_of, make_application
from tests.skips import why_not_allowed
from tests.tiers import TIERS, load_profile
from treeclaim.forest.table import columns

authorities.trust_one()
authorities.use_no_proxy()

# A shell starts background jobs with SIGINT ignored. Child processes would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SEEDS = 2**32


def pytest_addoption(parser):
    """Add the options of a run."""
    parser.addoption("--tier", choices=TIERS, default="quick", help="see CONTRIBUTING.md")
    parser.addoption(
        "--beyond-quick", action="store_true", help="skip tests that the quick tier runs in full"
    )
    parser.addoption(
        "--nothing-missing",
        action="store_true",
        help="fail tests whose software is not installed",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Set the number of examples and the seed of this run."""
    # In tests, every binary search first checks that its array is sorted.
    columns.CHECKED = True
    load_profile(config.getoption("--tier"))
    if config.getoption("hypothesis_seed") is None:
        # xdist passes the options to its processes.
        config.option.hypothesis_seed = str(secrets.randbelow(SEEDS))
    config.pluginmanager.register(FIXTURES)


def pytest_sessionstart(session):
    """Isolate the quick tier."""
    if session.config.getoption("--tier") == "quick":
        folder = Path(session.config._tmp_path_factory.mktemp("programs"))
        session.config.pluginmanager.register(Isolation(folder), "isolation")


def pytest_report_header(config):
    """Show the tier and the seed of properties."""
    return f"tier: {config.getoption('--tier')}, seed: {config.getoption('hypothesis_seed')}"


LONGEST = (
    "test_pairs.py",
    "test_openstack_command.py",
    "test_takeover.py",
    "test_replacing_placement.py",
    "test_claims_over_http.py",
    "test_a_history_changes_no_answer.py",
    "test_schedules.py",
    "test_reduction.py",
    "test_serve.py",
    "test_attacks.py",
    "test_readers_miss_nothing.py",
    "test_claims_match_the_model.py",
    "test_the_store_matches_the_model.py",
    "test_consumption.py",
    "test_gabbits.py",
    "test_recipes.py",
    "test_access.py",
    "ui/test_hostile_texts.py",
    "test_states.py",
    "test_openapi.py",
    "test_check.py",
    "test_foreign_clients.py",
    "test_galera.py",
    "test_kills.py",
    "test_waits.py",
    "test_lost_connections.py",
    "test_candidates_match_the_definition.py",
    "test_plans_in_large_clouds.py",
)
"""Path suffixes of files that take minutes. They run first, so that no process is busy long after the others. The
first of them mostly wait for other processes."""

ONE_BY_ONE = ("tests/store/schedules/test_pairs.py",)
"""Files whose tests take minutes each; their tests are distributed one by one."""


TOGETHER = ("tests/openstack_plugin/",)
"""Folders whose tests share a fixture that takes seconds; one process runs all of a folder."""


class FilesOrTests(LoadFileScheduling):
    """Distributes whole files, whose tests share fixtures; also the folders of `TOGETHER`, and single tests of `ONE_BY_ONE`."""

    def _split_scope(self, nodeid):
        if nodeid.startswith(ONE_BY_ONE):
            return nodeid
        shared = (folder for folder in TOGETHER if nodeid.startswith(folder))
        return next(shared, None) or super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Replace the scheduler of `--dist loadfile`."""
    return FilesOrTests(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session):
    """Collect thousands of tests without garbage collection, and exclude them from later collections.

    Otherwise each `gc.collect` of a test would take half a second.
    """
    gc.disable()
    try:
        items = yield
        gc.collect()
        gc.freeze()
        # With the default threshold of 700 allocations, the collector took 57 of 785 s of the quick run.
        gc.set_threshold(20_000, 20, 20)
    finally:
        gc.enable()
    return items


def pytest_collection_modifyitems(config, items):
    """Select the tests of the tier, and sort the longest files first."""
    tier, beyond_quick = config.getoption("--tier"), config.getoption("--beyond-quick")
    for item in items:
        request_marked(item)
    left_out = [item for item in items if not is_in(item, tier, beyond_quick=beyond_quick)]
    dropped = set(left_out)
    items[:] = [item for item in items if item not in dropped]
    config.hook.pytest_deselected(items=left_out)
    ranks = {path: rank_of(path) for path in {item.path for item in items}}
    items.sort(key=lambda item: ranks[item.path])


def is_in(item, tier, *, beyond_quick):
    """Return whether a test belongs to a tier, and to the requested part of it."""
    if item.get_closest_marker("long") is not None:
        return tier == "all"
    is_quick = in_quick_tier(item) and item.get_closest_marker("slow") is None
    if tier == "quick":
        return is_quick
    # A fresh machine skips tests that request resources, and tries fewer examples.
    runs_in_full = is_quick and not requested_by(item) and not is_property(item)
    return not (beyond_quick and runs_in_full)


def is_property(item):
    """Return whether a test draws examples by a seed."""
    function = getattr(item, "obj", None)
    return hasattr(function, "hypothesis") or item.path.parent.name == "properties"


def rank_of(path):
    """The rank of a file in `LONGEST`; its length for any other file."""
    return next((rank for rank, end in enumerate(LONGEST) if path.match(end)), len(LONGEST))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Publish the resources of the running test to the code that starts programs."""
    Running.requested = requested_by(item)
    try:
        return (yield)
    finally:
        Running.requested = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Fail a test that is skipped without a reason from the list."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr
        may_lack = not item.config.getoption("--nothing-missing")
        if failure := why_not_allowed(reason.removeprefix("Skipped: "), may_lack=may_lack):
            report.outcome = "failed"
            report.longrepr = failure
    return report


def pytest_terminal_summary(terminalreporter, config):
    """Print a note about other tiers, and a command that repeats each failure."""
    tier, seed = config.getoption("--tier"), config.getoption("hypothesis_seed")
    if tier != "all":
        terminalreporter.write_line(
            "NOT RUN: tests of other tiers. All: make test-all; .ci/run installs what they need."
        )
    failed = {
        report.nodeid
        for outcome in ("failed", "error")
        for report in terminalreporter.stats.get(outcome, [])
        if hasattr(report, "nodeid")
    }
    for name in sorted(failed):
        worlds = os.environ.get("TREECLAIM_PROPERTY_EXAMPLES")
        variable = f"TREECLAIM_PROPERTY_EXAMPLES={worlds} " if worlds else ""
        terminalreporter.write_line(
            f"AGAIN: {variable}.venv/bin/pytest -p no:xdist --tier={tier} --hypothesis-seed={seed} '{name}'"
        )


@pytest.fixture
def run_seed(request):
    """The seed of the run, as in its header and in the command that repeats a failure."""
    return request.config.getoption("hypothesis_seed")


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
