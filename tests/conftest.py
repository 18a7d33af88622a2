# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all tests share."""

import gc
import os
import signal

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

from tests import authorities, sampling
from tests.databases import KINDS
from tests.extent import SLOW, Extent
from tests.service import client_of, make_application
from treeclaim.forest.table import columns

# What is judged automatically tries the same examples each time; people's runs try new ones.
# No example has a deadline: how long it takes says more of the machine than of the service.
hypothesis.settings.register_profile("judged", derandomize=True, deadline=None)
hypothesis.settings.register_profile("tried", deadline=None)
PROFILE = "judged" if os.environ.get("CI") else "tried"
hypothesis.settings.load_profile(PROFILE)

QUICK_EXAMPLES = 25
"""Of each property that does not say how many it tries; a run of everything tries a hundred."""

authorities.trust_one()

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
    # Whatever is searched by halves must ascend, in every test that gets there.
    columns.CHECKED = True
    Extent.everything = config.getoption("--databases") == "all"
    if not Extent.everything:
        usual = hypothesis.settings.get_profile(PROFILE)
        hypothesis.settings.register_profile("quick", usual, max_examples=QUICK_EXAMPLES)
        hypothesis.settings.load_profile("quick")


LEFT_OUT = pytest.StashKey[int]()
"""How many tests a quick run does not make, which is said at its end."""

NOT_SAMPLED = pytest.StashKey[dict[str, int]]()
"""How many tests of each sample a run of all does not make, which is said too."""


LONGEST = (
    "api/test_holds.py",
    "test_openstack_command.py",
    "test_unrecorded_consumers.py",
    "test_providers_and_classes.py",
    "test_takeover.py",
    "test_absent_consumers.py",
    "test_consumers_left_behind.py",
    "test_present_consumers.py",
    "test_replacing_placement.py",
    "test_a_history_changes_no_answer.py",
    "test_schedules.py",
    "test_reduction.py",
    "test_serve.py",
    "test_attacks.py",
    "test_readers_miss_nothing.py",
    "test_holds.py",
    "test_conditions.py",
    "test_consumption.py",
    "test_gabbits.py",
    "test_recipes.py",
    "test_access.py",
    "ui/test_hostile_texts.py",
    "test_states.py",
    "test_openapi.py",
    "test_check.py",
    "test_nova_report_client.py",
    "test_galera.py",
    "test_worked_examples.py",
    "test_kills.py",
    "test_waits.py",
    "test_lost_connections.py",
    "test_candidates_match_the_definition.py",
    "test_plans_against_a_solver.py",
)
"""Files that take minutes, by the ends of their paths; begun first, they do not keep a run waiting at its
end. The first one measures a process that forks, which takes the longer the more other tests have left in it;
the next ones wait for what they start more than for a processor."""

LONGEST_QUICK = (
    "test_resource_metrics.py",
    "test_gabbits.py",
    "test_serve.py",
    "test_hostile_clients.py",
    "test_lanes.py",
    "test_copies_stay_equal.py",
    "test_claims_over_http.py",
    "test_speaking_http.py",
    "test_schedules.py",
    "test_admin.py",
    "test_watching.py",
    "test_looking.py",
    "test_placing.py",
    "test_mistakes.py",
)
"""The same of the quick run, where they take ten seconds and more; most of it they wait."""


ONE_BY_ONE = (
    "tests/store/schedules/pairs/",
    "tests/store/operations/test_holds.py",
    "tests/store/operations/test_conditions.py",
)
"""Where each test takes up to minutes: a process that had a whole file would keep a run waiting for an hour."""


TOGETHER = ("tests/repository/", "tests/openstack_plugin/")
"""Folders whose tests share what takes seconds to make."""


class FilesOrTests(LoadFileScheduling):
    """Gives each process of a run whole files, whose tests share what they start, or single tests.

    Some folders share that too: the trees of all sources, a process that has imported `openstack`.
    """

    def _split_scope(self, nodeid):
        if nodeid.startswith(ONE_BY_ONE):
            return nodeid
        shared = (folder for folder in TOGETHER if nodeid.startswith(folder))
        return next(shared, None) or super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give whole files to processes as `--dist loadfile` does, but what takes long test by test."""
    return FilesOrTests(config, log) if config.getvalue("dist") == "loadfile" else None


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
        # What is allocated between two looks; with the usual 700 they took 57 of 785 s of the quick run.
        gc.set_threshold(20_000, 20, 20)
    finally:
        gc.enable()
    return found


def pytest_collection_modifyitems(config, items):
    """Leave what is slow, or needs another database, to the runs on all databases."""
    longest = LONGEST if Extent.everything else LONGEST_QUICK
    ranks = {path: rank_in(longest, path) for path in {item.path for item in items}}
    items.sort(key=lambda item: ranks[item.path])
    if Extent.everything:
        leave_out_of_samples(config, items)
        return
    kept, left_out = [], []
    for item in items:
        (left_out if is_left_out(item) else kept).append(item)
    config.stash[LEFT_OUT] = len(left_out)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def rank_in(longest, path):
    """The place of a file among those that are begun first; the number of these for any other file."""
    return next((rank for rank, end in enumerate(longest) if path.match(end)), len(longest))


def leave_out_of_samples(config, items):
    """Leave out most of some long tests while nothing that takes part in them has changed."""
    by_sample = sampling.left_out([item for item in items if is_left_out(item)])
    config.stash[NOT_SAMPLED] = {sample.name: len(some) for sample, some in by_sample.items()}
    dropped = {item for some in by_sample.values() for item in some}
    config.hook.pytest_deselected(items=list(dropped))
    items[:] = [item for item in items if item not in dropped]


def is_left_out(item):
    """Whether a test is slow, or one of a database that is a server."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    named = {value for value in parameters if isinstance(value, str)}
    marked = item.get_closest_marker("slow") is not None or item.nodeid in SLOW
    return marked or bool(named & set(KINDS[1:]))


def pytest_sessionfinish(session):
    """Let the first process of a run in several know."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)
        session.config.workeroutput["not_sampled"] = session.config.stash.get(NOT_SAMPLED, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take what one of several processes knows; all have collected the same tests."""
    told = getattr(node, "workeroutput", {})
    node.config.stash[LEFT_OUT] = told.get("left_out", 0)
    node.config.stash[NOT_SAMPLED] = told.get("not_sampled", {})


def pytest_terminal_summary(terminalreporter, config):
    """Say what was not run, and how to run it."""
    if left_out := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(
            f"NOT RUN: {left_out} tests that are slow, or need PostgreSQL, MariaDB, Keystone or another "
            "web server. All: make test TEST_OPTIONS=--databases=all; .ci/run installs what they need."
        )
    not_sampled = config.stash.get(NOT_SAMPLED, {})
    for sample in sampling.SAMPLES:
        if count := not_sampled.get(sample.name, 0):
            terminalreporter.write_line(
                f"NOT RUN: {count} {sample.what}. All passed with this code, so one of {sample.share} "
                "was made again, another for each commit. All: make test-all."
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
