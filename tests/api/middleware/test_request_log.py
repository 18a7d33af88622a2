# SPDX-License-Identifier: Apache-2.0
"""The log lines of requests (contract page 05, section 3.1)."""

import json
import re

import httpx
import pytest

from tests.servers import service_environment, serving

GLOBAL = "req-6f5a2c54-3c06-4a5b-a1b2-7e0ce0b8d601"


def ask(server):
    """Send one request of a user."""
    httpx.get(
        f"{server.url}/resource_providers?name=x",
        headers={
            "x-auth-token": "admin:treasury",
            "openstack-api-version": "placement 1.20",
            "x-openstack-request-id": GLOBAL,
        },
    ).raise_for_status()


def lines_of(server):
    """The lines about requests for providers of a server that has ended."""
    return [line for line in server.log.read_text().splitlines() if "/resource_providers" in line]


def test_log_line_has_the_usual_format_with_user_and_project_and_a_bound(tmp_path):
    with serving(service_environment(tmp_path), tmp_path) as server:
        ask(server)
        httpx.get(
            f"{server.url}/resource_providers?name={'x' * 50_000}",
            headers={"x-auth-token": f"{'u' * 20_000}:{'p' * 20_000}"},
        )
    usual, long = lines_of(server)
    assert re.search(
        r'127\.0\.0\.1 "GET /resource_providers\?name=x" status: 200 len: 25 '
        r"microversion: 1\.20 time: \d+\.\d{6}$",
        usual,
    )
    assert re.search(rf"\[{GLOBAL} req-[0-9a-f-]+ admin treasury ", usual)
    assert len(long) < 6_000


@pytest.mark.slow
def test_a_line_can_be_json(tmp_path):
    environment = service_environment(tmp_path, OS_DEFAULT__USE_JSON="true")
    with serving(environment, tmp_path) as server:
        ask(server)
    (line,) = lines_of(server)
    record = json.loads(line)
    assert record["context"]["user"] == "admin"
    assert record["context"]["project"] == "treasury"
    assert record["context"]["global_request_id"] == GLOBAL
    assert 0 < record["extra"].pop("seconds") < 60
    assert record["extra"] == {"status": "200", "microversion": "1.20"}
