# SPDX-License-Identifier: Apache-2.0
"""The HTTP conformance suites: one request of `gabbits/*.yaml` is one test.

A suite is a sequence; a request that is asked for alone, or that another test
process was given, has those before it run first.
"""

import sys
import unittest
from pathlib import Path

import pytest
from gabbi import driver, reporter

from tests.conformance import fixtures, response_checks, services

# Each request runs the one before it, if that has not run yet, from within itself.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))

SUITES = Path(__file__).parent / "gabbits"
HANDLERS = [
    response_checks.PromisesHandler,
    response_checks.ErrorHandler,
    response_checks.AbsentHandler,
]


class Running:
    """The suite whose service runs; at most one at a time does."""

    suite = None
    skipped = None

    @classmethod
    def switch(cls, suite):
        """Stop the service of another suite, and start this one's."""
        if cls.suite is suite:
            return
        cls.stop()
        cls.suite = suite
        result = unittest.TestResult()
        suite.start(result)
        cls.skipped = result.skipped[0][1] if result.skipped else None

    @classmethod
    def stop(cls):
        if cls.suite is not None and cls.skipped is None:
            cls.suite.stop()
        cls.suite = cls.skipped = None


def pytest_generate_tests(metafunc):
    """Make one test of each request in the suites."""
    suites = driver.build_tests(
        str(SUITES),
        unittest.TestLoader(),
        url=services.URL,
        intercept=None if services.URL else services.intercept,
        test_loader_name="conformance",
        fixture_module=fixtures,
        response_handlers=HANDLERS,
        cert_validate=False,
    )
    by_name = sorted(suites, key=lambda suite: next(iter(suite)).test_base_name)
    requests = [(suite, request) for suite in by_name for request in suite]
    names = [type(request).__name__ for _, request in requests]
    metafunc.parametrize(("suite", "request_of_suite"), requests, ids=names)


@pytest.fixture(scope="module", autouse=True)
def _last_service_stops():
    yield
    Running.stop()


def test_the_answer_is_the_one_that_the_contract_asks_for(suite, request_of_suite):
    Running.switch(suite)
    if Running.skipped:
        pytest.skip(Running.skipped)
    request_of_suite(reporter.PyTestResult())
