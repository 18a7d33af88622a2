# SPDX-License-Identifier: Apache-2.0
"""A `[keystone_authtoken]` that cannot work is reported before a request needs it."""

import socket
from typing import Any

import httpx
import pytest

from tests.cli.processes import call
from tests.keystone.keystone_server import PASSWORD, REGION
from tests.ports import free_port
from tests.servers import eventually, service_environment, serving
from treeclaim import config
from treeclaim.admin import FaultKind
from treeclaim.admin.keystone_check import check_keystone

pytestmark = pytest.mark.slow


def environment_of(folder, keystone, **changes):
    """The environment of a service with a file that has these options in `[keystone_authtoken]`."""
    options = keystone.service_options(http_request_max_retries="0", **changes)
    (folder / "placement.conf").write_text(f"[keystone_authtoken]\n{options}")
    return service_environment(folder, OS_API__AUTH_STRATEGY="keystone")


CASES: dict[str, tuple[dict[str, Any], FaultKind, str]] = {
    "no section": ({"auth_type": None}, FaultKind.REFUSED, "auth_type is missing"),
    "no password": ({"password": None}, FaultKind.REFUSED, "password is a required"),
    "wrong password": ({"password": "wrong"}, FaultKind.REFUSED, "Keystone refuses the user"),
    "no such user": ({"username": "stranger"}, FaultKind.REFUSED, "Keystone refuses the user"),
    "unknown region": ({"region_name": "Nowhere"}, FaultKind.REFUSED, "in Nowhere region"),
    "no address": (
        {"auth_url": "http://no-such-host.invalid:5000/v3"},
        FaultKind.UNREACHABLE,
        "Keystone does not answer",
    ),
    "may not validate": (
        {"username": "nobody", "project_name": "department"},
        FaultKind.DOUBTFUL,
        "may not validate tokens",
    ),
}


@pytest.fixture
def fault_with(keystone, tmp_path, monkeypatch):
    """A function that returns the fault of `[keystone_authtoken]` with changed options."""

    def check(**changes):
        for variable, value in environment_of(tmp_path, keystone, **changes).items():
            monkeypatch.setenv(variable, value)
        loaded = config.load(config_files=[str(tmp_path / "placement.conf")])
        return check_keystone(loaded.options)

    return check


@pytest.mark.parametrize("name", CASES)
def test_unusable_keystone_options_are_reported(fault_with, name):
    changes, kind, finding = CASES[name]
    fault = fault_with(**changes)
    assert fault is not None
    assert (fault.kind, finding in fault.detail) == (kind, True), fault
    for secret in (PASSWORD, "127.0.0.1", "no-such-host"):
        assert secret not in fault.summary


def test_no_listener_is_a_fault(fault_with):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        fault = fault_with(auth_url=f"http://127.0.0.1:{bound.getsockname()[1]}/v3")
    assert fault.kind is FaultKind.UNREACHABLE


@pytest.mark.parametrize("region", [None, REGION])
def test_user_allowed_to_validate_tokens_passes_the_check(fault_with, region):
    assert fault_with(region_name=region) is None


@pytest.mark.parametrize(
    ("password", "finding", "status"),
    [("wrong", "Keystone refuses the user", "not ready: "), (PASSWORD, "ready\n", "ready\n")],
)
def test_ready_shows_whether_keystone_accepts_the_user(
    tmp_path, keystone, password, finding, status
):
    environment = environment_of(tmp_path, keystone, password=password)
    admin = f"127.0.0.1:{free_port()}"
    environment["OS_TREECLAIM__ADMIN_LISTEN"] = admin
    with serving(environment, tmp_path, "--workers=1"):
        text = eventually(lambda: ready_text(admin, finding), "Keystone has answered")
    assert text.startswith(status)


def test_config_check_reports_a_wrong_password(tmp_path, keystone):
    environment = environment_of(tmp_path, keystone, password="wrong")
    refused = call(environment, "config", "check")
    assert refused.returncode == 1
    assert "Keystone refuses the user" in refused.stderr


def ready_text(admin, part):
    """Return the body of `/ready`, as soon as it contains a text."""
    try:
        text = httpx.get(f"http://{admin}/ready", timeout=30).text
    except httpx.TransportError:
        return None
    return text if part in text else None
