# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all tests share."""

import os

import hypothesis
import pytest

from tests.databases import KINDS
from tests.service import client_of, make_application

# What is judged automatically tries the same examples each time; people's runs try new ones.
hypothesis.settings.register_profile("judged", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("judged")


def pytest_addoption(parser):
    """Let the HTTP suites run on every database; on SQLite alone they take a third of the time."""
    parser.addoption(
        "--databases",
        choices=["sqlite", "all"],
        default="sqlite",
        help="databases under the HTTP conformance suites",
    )


def pytest_collection_modifyitems(config, items):
    """Leave slow tests to the runs on all databases, and say so."""
    if config.getoption("--databases") == "all":
        return
    left_out = pytest.mark.skip(reason="slow, NOT RUN: runs with --databases=all")
    for one in items:
        if one.get_closest_marker("slow"):
            one.add_marker(left_out)


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
