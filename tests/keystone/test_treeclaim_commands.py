# SPDX-License-Identifier: Apache-2.0
"""`treeclaim` commands that log in to Keystone with a password."""

import json
import re
import uuid

import pytest

from tests.cli.processes import call, run
from tests.cli.services import run_refused_command, run_successful_command
from tests.keystone.keystone_server import PASSWORD, REGION
from tests.servers import usual_environment

pytestmark = pytest.mark.slow

TOPOLOGY = """\
providers:
  - name: login-host
    inventories: {PCPU: 8}
"""


@pytest.fixture
def environment(keystone, service, tmp_path):
    """The environment of an administrator with a password."""
    return usual_environment(tmp_path, **keystone.login())


@pytest.fixture
def loaded(environment, tmp_path):
    """A host, taken away in the end."""
    topology = tmp_path / "topology.yaml"
    topology.write_text(TOPOLOGY)
    run_successful_command(environment, "load", str(topology))


def test_password_login_finds_the_endpoint_for_all_commands(environment, loaded):
    result = run(environment, "candidates", "resources=PCPU:2")
    assert result.returncode == 0, result.stderr
    assert "login-host" in result.stdout
    consumer = str(uuid.uuid4())
    run_successful_command(environment, "claim", "--consumer", consumer, "resources=PCPU:2")
    assert re.search(r"PCPU.*2", run_successful_command(environment, "tree", "login-host"))
    run_successful_command(environment, "release", consumer)


def token_login(keystone, _folder):
    login = keystone.login() | {
        "OS_AUTH_TYPE": "token",
        "OS_TOKEN": keystone.token("admin", "admin"),
    }
    return {name: login[name] for name in login.keys() - {"OS_PASSWORD", "OS_USERNAME"}}


def clouds_yaml_login(keystone, folder):
    domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
    auth = {"auth_url": keystone.url, "username": "admin", "password": PASSWORD, **domains}
    cloud = {"region_name": REGION, "auth": auth | {"project_name": "admin"}}
    file = folder / "clouds.yaml"
    file.write_text(json.dumps({"clouds": {"here": cloud}}))
    return {"OS_CLIENT_CONFIG_FILE": str(file), "OS_CLOUD": "here"}


LOGINS = (token_login, clouds_yaml_login, lambda keystone, _: keystone.application_credential())


@pytest.mark.parametrize("login", LOGINS, ids=["token", "clouds.yaml", "application credential"])
def test_login_works(keystone, service, loaded, tmp_path, login):
    environment = usual_environment(tmp_path, **login(keystone, tmp_path))
    result = call(environment, "candidates", "resources=PCPU:2")
    assert result.returncode == 0, result.stderr


def test_application_credential_without_its_secret_is_refused(keystone, service, tmp_path):
    environment = usual_environment(tmp_path, **keystone.application_credential())
    del environment["OS_APPLICATION_CREDENTIAL_SECRET"]
    assert "auth secret" in run_refused_command(environment, "candidates", "resources=PCPU:2")


def test_wrong_password_is_reported_in_one_line(environment):
    message = run_refused_command(
        environment | {"OS_PASSWORD": "wrong"}, "candidates", "resources=PCPU:1"
    )
    assert "Keystone refused the login" in message
    assert "401" in message


def test_member_gets_the_denied_policy_rule(keystone, service, tmp_path):
    environment = usual_environment(tmp_path, **keystone.login("member", "department"))
    message = run_refused_command(environment, "candidates", "resources=PCPU:1")
    assert "Policy does not allow placement:allocation_candidates:list" in message


def test_a_region_without_the_service_is_named(environment):
    elsewhere = environment | {"OS_REGION_NAME": "Nowhere"}
    assert "placement" in run_refused_command(elsewhere, "candidates", "resources=PCPU:1")
