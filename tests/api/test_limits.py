# SPDX-License-Identifier: Apache-2.0
"""Limits against misuse: too much is refused before it costs anything."""

import io
import uuid

import pytest

from tests.api.raw import send
from tests.bodies import add_hosts
from tests.service import client_of, make_application
from treeclaim import metrics

LONGEST = 4096
EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}


@pytest.fixture
def application(tmp_path):
    """A service that takes short bodies alone."""
    return make_application(tmp_path, **{"treeclaim.max_body_bytes": LONGEST})


class Endless(io.RawIOBase):
    """An endless body, which counts the bytes that were read."""

    def __init__(self):
        self.taken = 0

    def readable(self):
        return True

    def read(self, size=-1):
        assert size >= 0, "somebody wants all of it"
        self.taken += size
        return b"x" * size


def test_a_body_that_is_too_long_is_refused_unread(application):
    body = Endless()
    path = "/allocations/6f5a2c54-3c06-4a5b-a1b2-7e0ce0b8d601"
    refused = send(application, "PUT", path, body=body, content_length=str(LONGEST + 1))
    assert refused.status == refused.json()["errors"][0]["status"] == 413
    assert str(LONGEST) in refused.detail
    assert body.taken == 0


def test_body_of_an_unauthorized_request_is_not_read(application):
    body = Endless()
    user = {"http_x_auth_token": "user", "http_x_roles": None}
    assert (
        send(application, "POST", "/reshaper", body=body, content_length="1000", **user).status
        == 403
    )
    assert body.taken == 0


def test_a_body_of_the_greatest_length_is_read(application):
    body = b'{"name": "host"}'.ljust(LONGEST)
    assert send(application, "POST", "/resource_providers", body=body).status == 200


@pytest.mark.slow
def test_endless_search_times_out_with_advice(tmp_path, monkeypatch):
    """Even amounts do not fill odd rooms: counting does not show it, and there is much to try."""
    application = make_application(tmp_path, **{"treeclaim.search_seconds": 0.2})
    with client_of(application, **EXTENDED) as client:
        root, *children = (str(uuid.UUID(int=number)) for number in range(25))
        add_hosts(client, root)
        entries = [
            {
                "uuid": child,
                "name": child,
                "parent_provider_uuid": root,
                "inventories": {"VGPU": {"total": 99}},
            }
            for child in children
        ]
        assert client.post("/treeclaim/providers", json={"providers": entries}).is_success
        amounts = [18 + 2 * (number % 15) for number in range(73)]
        amounts.append(24 * 98 + 2 - sum(amounts))
        groups = "&".join(
            f"resources{number}=VGPU:{units}" for number, units in enumerate(amounts, 1)
        )
        phases = []
        monkeypatch.setattr(metrics, "phase_listeners", [lambda *phase: phases.append(phase)])
        for path in ("", "/explain"):
            given_up = client.get(
                f"/allocation_candidates{path}?{groups}&group_policy=none&limit=1"
            )
            assert given_up.status_code == 400
            detail = given_up.json()["errors"][0]["detail"]
            assert "given up after 0.2 seconds" in detail
            assert "search_seconds" in detail
        assert sum(seconds for _, seconds, _ in phases) > 0.15
        assert client.get("/allocation_candidates?resources1=VGPU:1&limit=1").status_code == 200
