# SPDX-License-Identifier: Apache-2.0
"""Limits against misuse: too much is refused before it costs anything."""

import io
from wsgiref.util import setup_testing_defaults

import pytest

from tests.service import client_of, make_application
from treeclaim import metrics

LONGEST = 4096


@pytest.fixture
def application(tmp_path):
    """A service that takes short bodies alone."""
    return make_application(tmp_path, **{"treeclaim.max_body_bytes": LONGEST})


class Endless(io.RawIOBase):
    """A body without an end, which counts what was taken of it."""

    def __init__(self):
        self.taken = 0

    def readable(self):
        return True

    def read(self, size=-1):
        assert size >= 0, "somebody wants all of it"
        self.taken += size
        return b"x" * size


def call(application, body, **environment):
    """Call a WSGI application; returns the status."""
    found = []
    full = {
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": "/traits/CUSTOM_ONE",
        "wsgi.input": body,
        "CONTENT_TYPE": "application/json",
        "HTTP_X_AUTH_TOKEN": "admin",
        "HTTP_OPENSTACK_API_VERSION": "placement 1.39",
    } | environment
    setup_testing_defaults(full)
    list(application(full, lambda status, _headers, _info=None: found.append(status)))
    return int(found[0][:3])


def test_a_body_that_is_too_long_is_refused_unread(application):
    body = Endless()
    path = "/allocations/6f5a2c54-3c06-4a5b-a1b2-7e0ce0b8d601"
    assert call(application, body, PATH_INFO=path, CONTENT_LENGTH=str(LONGEST + 1)) == 413
    assert body.taken == 0
    with client_of(application) as client:
        refused = client.put(
            path, content=b"x" * (LONGEST + 1), headers={"content-type": "application/json"}
        )
    assert refused.json()["errors"][0]["status"] == 413
    assert str(LONGEST) in refused.json()["errors"][0]["detail"]


def test_body_of_an_unauthorized_request_is_not_read(application):
    body = Endless()
    environment = {"PATH_INFO": "/reshaper", "REQUEST_METHOD": "POST", "CONTENT_LENGTH": "1000"}
    assert call(application, body, **environment, HTTP_X_AUTH_TOKEN="user") == 403
    assert body.taken == 0


def test_a_body_of_the_greatest_length_is_read(application):
    with client_of(application) as client:
        body = b'{"name": "host"}'.ljust(LONGEST)
        answer = client.post(
            "/resource_providers", content=body, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 200


@pytest.mark.slow
def test_endless_search_times_out_with_advice(tmp_path, monkeypatch):
    """Even amounts do not fill odd rooms: counting does not show it, and there is much to try."""
    application = make_application(tmp_path, **{"treeclaim.search_seconds": 0.2})
    with client_of(application) as client:
        root = "00000000-0000-0000-0000-00000000000a"
        client.post("/resource_providers", json={"name": "root", "uuid": root})
        for number in range(24):
            child = f"00000000-0000-0000-0000-{number + 16:012d}"
            body = {"name": f"child {number}", "uuid": child, "parent_provider_uuid": root}
            assert client.post("/resource_providers", json=body).status_code == 200
            given = {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 99}}}
            assert client.put(f"/resource_providers/{child}/inventories", json=given).is_success
        amounts = [18 + 2 * (number % 15) for number in range(73)]
        amounts.append(24 * 98 + 2 - sum(amounts))
        groups = "&".join(f"resources{one}=VGPU:{units}" for one, units in enumerate(amounts, 1))
        phases = []
        monkeypatch.setattr(metrics, "phase_listeners", [lambda *one: phases.append(one)])
        for path in ("", "/explain"):
            given_up = client.get(
                f"/allocation_candidates{path}?{groups}&group_policy=none&limit=1",
                headers={"openstack-api-version": "placement 1.39, treeclaim 1.0"},
            )
            assert given_up.status_code == 400
            detail = given_up.json()["errors"][0]["detail"]
            assert "given up after 0.2 seconds" in detail
            assert "search_seconds" in detail
        assert sum(seconds for _, seconds, _ in phases) > 0.15
        assert client.get("/allocation_candidates?resources1=VGPU:1&limit=1").status_code == 200
