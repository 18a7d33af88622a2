# SPDX-License-Identifier: Apache-2.0
"""The log lines of requests (contract page 05, section 3.1)."""

import json
import re
import signal
import subprocess

import httpx

from tests.admin.test_admin import environment, until  # noqa: F401 - a fixture
from tests.cli.processes import COMMAND
from tests.databases import free_port

GLOBAL = "req-6f5a2c54-3c06-4a5b-a1b2-7e0ce0b8d601"


def lines_of(environment, log):  # noqa: F811
    """What a service logs of one request of a user."""
    port = free_port()
    settings = environment | {"OS_TREECLAIM__ADMIN_LISTEN": ""}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", str(port)], env=settings, stderr=output, stdout=output
        )
    try:
        url = f"http://127.0.0.1:{port}"
        until(lambda: httpx.get(url).status_code == 200)
        httpx.get(
            f"{url}/resource_providers?name=x",
            headers={
                "x-auth-token": "admin:treasury",
                "openstack-api-version": "placement 1.20",
                "x-openstack-request-id": GLOBAL,
            },
        )
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
    return [line for line in log.read_text().splitlines() if "/resource_providers" in line]


def test_a_line_has_the_usual_shape_and_tells_who_asked(environment, tmp_path):  # noqa: F811
    (line,) = lines_of(environment, tmp_path / "log")
    assert re.search(
        r'127\.0\.0\.1 "GET /resource_providers\?name=x" status: 200 len: 25 microversion: 1\.20$',
        line,
    )
    assert re.search(rf"\[{GLOBAL} req-[0-9a-f-]+ admin treasury ", line)


def test_a_line_can_be_json(environment, tmp_path):  # noqa: F811
    environment["OS_DEFAULT__USE_JSON"] = "true"
    (line,) = lines_of(environment, tmp_path / "log")
    record = json.loads(line)
    assert record["context"]["user"] == "admin"
    assert record["context"]["project"] == "treasury"
    assert record["context"]["global_request_id"] == GLOBAL
    assert record["extra"] == {"status": "200", "microversion": "1.20"}
