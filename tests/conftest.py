# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all tests share."""

import pytest

from tests.service import client_of, make_application


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
