# SPDX-License-Identifier: Apache-2.0
"""The HTTP conformance suites: one request of `gabbits/*.yaml` is one test.

A suite is a sequence: before a request that is selected alone, or runs in another test process, all earlier requests run.
`suites.py` describes the additional keys of a suite.
"""

import sys
import unittest
from pathlib import Path
from unittest.mock import patch

import pytest
from gabbi import driver, reporter, utils

from tests.conformance import response_checks, services, suites
from tests.databases import KINDS
from tests.resources import needs
from treeclaim.replica.following import Follower

# Each request runs the one before it, if that has not run yet, from within itself.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))

FILES = Path(__file__).parent / "gabbits"
HANDLERS = [
    response_checks.PromisesHandler,
    response_checks.ErrorHandler,
    response_checks.AbsentHandler,
]

CASE_BLIND = "MariaDB's usual collation takes two spellings for the same (contract page 85)"
KNOWN_DIFFERENCES = {
    "mariadb_aggregates_and_read_as_given": CASE_BLIND,
    "mariadb_providers_names_differ_in_case": CASE_BLIND,
}


class Running:
    """The suite with a running service; at most one at a time."""

    suite = None

    @classmethod
    def switch(cls, kind, suite):
        """Stop the service of another suite, and start this one's."""
        if cls.suite is not suite:
            cls.stop()
            cls.suite = suite
            services.Current.database = kind
            suite.start(unittest.TestResult())

    @classmethod
    def stop(cls):
        if cls.suite is not None:
            cls.suite.stop()
        cls.suite = None


def pytest_generate_tests(metafunc):
    """Make one test of each request in the suites, on each database that is wanted."""
    requests = [
        _parameters(kind, suite, request)
        for kind in KINDS
        for suite in _suites()
        if kind == "sqlite" or not suites.is_for_sqlite_alone(suite)
        for request in suite
    ]
    metafunc.parametrize(("kind", "suite", "request_of_suite"), requests)


def _suites():
    """The suites, made anew: each database needs requests of its own, as they run only once."""
    with patch.object(utils, "load_yaml", suites.load):
        built = driver.build_tests(
            str(FILES),
            unittest.TestLoader(),
            intercept=services.intercept,
            test_loader_name="conformance",
            fixture_module=services,
            response_handlers=HANDLERS,
            cert_validate=False,
        )
    return sorted(built, key=lambda suite: next(iter(suite)).test_base_name)


def _parameters(kind, suite, request):
    name = type(request).__name__
    if kind != "sqlite":
        name = f"{kind}_{name}"
    reason = KNOWN_DIFFERENCES.get(name)
    marks = [] if kind == "sqlite" else [needs(kind)]
    if reason:
        marks.append(pytest.mark.xfail(reason=reason))
    return pytest.param(kind, suite, request, id=name, marks=marks)


@pytest.fixture(scope="module", autouse=True)
def _last_service_stops():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("catch_up", "catch_up_within"):
            patch.setattr(Follower, name, services.noting_use(getattr(Follower, name)))
        yield
    Running.stop()


def test_response_matches_the_contract(kind, suite, request_of_suite):
    Running.switch(kind, suite)
    request_of_suite(reporter.PyTestResult())
