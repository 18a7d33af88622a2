# SPDX-License-Identifier: Apache-2.0
"""A service for the commands of a module."""

import pytest

from tests.cli.services import open_client, run_service, run_successful_command
from tests.paths import EXAMPLE


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment of commands that talk to a service with the example topology."""
    with run_service(tmp_path_factory.mktemp("service")) as variables:
        run_successful_command(variables, "load", str(EXAMPLE))
        yield variables


@pytest.fixture
def client(environment):
    """A client of the service that commands talk to."""
    with open_client(environment) as service_client:
        yield service_client
