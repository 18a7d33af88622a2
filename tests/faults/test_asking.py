# SPDX-License-Identifier: Apache-2.0
"""Reads at the end of tests of faults, while the database may still be busy."""

import httpx
import pytest

from tests.faults.harness.service import ATTEMPTS, body_of


def client_of_answers(statuses):
    """A client of a service that answers by these statuses, one after the other."""
    left = iter(statuses)

    def application(_environ, start):
        status = next(left)
        start(f"{status} said", [("content-type", "application/json")])
        return [b'{"max_unit": 7}' if status == 200 else b'{"errors": "why"}']

    transport = httpx.WSGITransport(app=application)
    return httpx.Client(transport=transport, base_url="http://placement.example")


def test_busy_service_is_retried():
    client = client_of_answers([503, 503, 200])
    assert body_of(client, "/inventory", pause=0) == {"max_unit": 7}


@pytest.mark.parametrize("statuses", [[404, 200], [503] * ATTEMPTS + [200]])
def test_other_errors_fail_with_status_and_text(statuses):
    client = client_of_answers(statuses)
    with pytest.raises(AssertionError, match=rf"{statuses[0]}.*why"):
        body_of(client, "/inventory", pause=0)
