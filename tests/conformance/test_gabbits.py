# SPDX-License-Identifier: Apache-2.0
"""The HTTP conformance suites: one request of `gabbits/*.yaml` is one test.

A suite is a sequence; naming a single request runs those before it too.
"""

import sys
from pathlib import Path

import pytest
from gabbi import driver

# pytest collects this function, which gabbi feeds with the requests.
from gabbi.driver import test_pytest  # noqa: F401

from tests.conformance import fixtures, response_checks, services

# A request that is run alone runs those before it, each from within the next.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))

SUITES = Path(__file__).parent / "gabbits"
HANDLERS = [
    response_checks.PromisesHandler,
    response_checks.ErrorHandler,
    response_checks.AbsentHandler,
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each request in the suites."""
    driver.py_test_generator(
        str(SUITES),
        url=services.URL,
        intercept=None if services.URL else services.intercept,
        test_loader_name="conformance",
        fixture_module=fixtures,
        response_handlers=HANDLERS,
        cert_validate=False,
        metafunc=metafunc,
    )
