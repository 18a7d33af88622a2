# SPDX-License-Identifier: Apache-2.0
"""`treeclaim` commands that log in to Keystone with a password."""

import re
import uuid

import pytest

from tests.cli.processes import call, run
from tests.keystone.keystone_server import PASSWORD
from tests.servers import usual_environment

pytestmark = pytest.mark.slow

TOPOLOGY = """\
providers:
  - name: login-host
    inventories: {PCPU: 8}
"""


@pytest.fixture
def environment(keystone, service, tmp_path):
    """The environment of an administrator who logs in with a password."""
    return usual_environment(tmp_path, **keystone.login())


@pytest.fixture
def loaded(environment, tmp_path):
    """A host, taken away in the end."""
    topology = tmp_path / "topology.yaml"
    topology.write_text(TOPOLOGY)
    result = call(environment, "load", str(topology))
    assert result.returncode == 0, result.stderr


def test_password_login_finds_the_endpoint_for_all_commands(environment, loaded):
    result = run(environment, "candidates", "resources=PCPU:2")
    assert result.returncode == 0, result.stderr
    assert "login-host" in result.stdout
    consumer = str(uuid.uuid4())
    claimed = call(environment, "claim", "--consumer", consumer, "resources=PCPU:2")
    assert claimed.returncode == 0, claimed.stderr
    tree = call(environment, "tree", "login-host")
    assert re.search(r"PCPU.*2", tree.stdout), tree.stdout + tree.stderr
    released = call(environment, "release", consumer)
    assert released.returncode == 0, released.stderr


def test_token_login_works(environment, loaded, keystone):
    del environment["OS_PASSWORD"], environment["OS_USERNAME"]
    environment["OS_TOKEN"] = keystone.token("admin", "admin")
    environment["OS_AUTH_TYPE"] = "token"
    result = call(environment, "candidates", "resources=PCPU:2")
    assert result.returncode == 0, result.stderr


def test_application_credential_login_works(keystone, service, loaded, tmp_path):
    environment = usual_environment(tmp_path, **keystone.application_credential())
    result = call(environment, "candidates", "resources=PCPU:2")
    assert result.returncode == 0, result.stderr
    del environment["OS_APPLICATION_CREDENTIAL_SECRET"]
    refused = call(environment, "candidates", "resources=PCPU:2")
    assert refused.returncode == 1
    assert "auth secret" in refused.stderr


def test_clouds_yaml_login_works(keystone, service, loaded, tmp_path):
    (tmp_path / "clouds.yaml").write_text(
        f"""\
clouds:
  here:
    region_name: RegionOne
    auth:
      auth_url: {keystone.url}
      username: admin
      password: {PASSWORD}
      project_name: admin
      user_domain_name: Default
      project_domain_name: Default
"""
    )
    configured = usual_environment(tmp_path, OS_CLIENT_CONFIG_FILE=str(tmp_path / "clouds.yaml"))
    result = call(configured | {"OS_CLOUD": "here"}, "candidates", "resources=PCPU:2")
    assert result.returncode == 0, result.stderr


def test_wrong_password_is_reported_in_one_line(environment):
    refused = run(environment | {"OS_PASSWORD": "wrong"}, "candidates", "resources=PCPU:1")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert "Keystone refused the login" in refused.stderr
    assert "401" in refused.stderr


def test_member_gets_the_denied_policy_rule(keystone, service, tmp_path):
    environment = usual_environment(tmp_path, **keystone.login("member", "department"))
    refused = call(environment, "candidates", "resources=PCPU:1")
    assert refused.returncode == 1
    assert "Policy does not allow placement:allocation_candidates:list" in refused.stderr


def test_a_region_without_the_service_is_named(environment):
    refused = call(environment | {"OS_REGION_NAME": "Nowhere"}, "candidates", "resources=PCPU:1")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert "placement" in refused.stderr
