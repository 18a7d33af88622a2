# SPDX-License-Identifier: Apache-2.0
"""What can be configured, and what is."""

import pytest
import yaml
from oslo_config import cfg

from tests.cli.processes import call, run
from tests.servers import usual_environment
from treeclaim import config
from treeclaim.config import list_options


@pytest.fixture
def environment(tmp_path):
    """The environment of a command with a configuration directory of its own."""
    return usual_environment(
        tmp_path,
        OS_PLACEMENT_CONFIG_DIR=str(tmp_path),
        OS_PLACEMENT_DATABASE__CONNECTION="mysql+pymysql://placement:hidden@db/placement",
    )


STOCK = """\
[DEFAULT]
debug = false
log_dir = /var/log/placement
transport_url = rabbit://openstack:secret@controller:5672/

[api]
auth_strategy = keystone

[cors]
allowed_origin = https://horizon.example

[keystone_authtoken]
www_authenticate_uri = http://controller:5000
auth_url = http://controller:5000/v3
memcached_servers = controller:11211
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = placement
password = PLACEMENT_PASS

[placement_database]
connection = mysql+pymysql://placement:PLACEMENT_DBPASS@controller/placement

[oslo_messaging_notifications]
driver = messagingv2
"""


def test_a_stock_file_is_read_as_it_is(tmp_path):
    path = tmp_path / "placement.conf"
    path.write_text(STOCK)
    loaded = config.load(config_files=[str(path)])
    assert loaded.options.debug is False
    assert loaded.auth_strategy == "keystone"
    assert loaded.cors_enabled
    assert "PLACEMENT_DBPASS@controller" in loaded.database.url


def test_check_tells_what_keystone_needs_without_its_secrets(environment, tmp_path):
    (tmp_path / "placement.conf").write_text(STOCK)
    shown = call(environment, "config", "check").stdout
    assert "[keystone_authtoken]/auth_url" in shown
    assert "PLACEMENT_PASS" not in shown


def test_check_tells_values_and_where_they_come_from(environment, tmp_path):
    file = tmp_path / "placement.conf"
    file.write_text("[placement]\nmax_allocation_candidates = 7\n[nobody]\nknows = this\n")
    environment["OS_API__AUTH_STRATEGY"] = "noauth2"
    shown = call(environment, "config", "check")
    assert shown.returncode == 0
    lines = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines()}
    assert lines["[placement]/max_allocation_candidates"] == ["=", "7", "#", str(file)]
    assert lines["[api]/auth_strategy"] == ["=", "noauth2", "#", "OS_API__AUTH_STRATEGY"]
    assert lines["[placement_database]/connection"][1] == "****"
    assert "hidden" not in shown.stdout
    assert "[placement]/randomize_allocation_candidates" not in lines
    every = call(environment, "config", "check", "--all").stdout
    assert "[placement]/randomize_allocation_candidates" in every


def test_a_deprecated_place_of_an_option_warns(environment, tmp_path):
    (tmp_path / "placement.conf").write_text("[DEFAULT]\nauth_strategy = noauth2\n")
    shown = run(environment, "config", "check")
    assert 'Option "auth_strategy" from group "DEFAULT" is deprecated' in shown.stderr
    assert "noauth2" in shown.stdout


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OS_API__AUTH_STRATEGY", "none", "auth_strategy"),
        ("OS_PLACEMENT__MAX_ALLOCATION_CANDIDATES", "many", "max_allocation_candidates"),
        ("OS_TREECLAIM__ADMIN_LISTEN", "nowhere", "[treeclaim]/admin_listen"),
        ("OS_TREECLAIM__ADMIN_LISTEN", "127.0.0.1:70000", "[treeclaim]/admin_listen"),
    ],
)
def test_a_wrong_value_is_refused_with_the_options_name(environment, name, value, said):
    refused = call(environment | {name: value}, "config", "check")
    assert refused.returncode == 1
    assert said in refused.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("'placement:usages': [", "line 1"),
        ("\n'placement:usages': 'rule:nobody'", "rule:nobody, which is not defined"),
        ("\n'placement:usage': '@'", "line 2: no operation asks for placement:usage"),
        ("'placement:usages': 'admin'", "cannot be understood as a rule"),
    ],
)
def test_a_broken_policy_file_is_refused(environment, tmp_path, text, said):
    (tmp_path / "policy.yaml").write_text(text)
    environment["OS_OSLO_POLICY__POLICY_FILE"] = str(tmp_path / "policy.yaml")
    refused = call(environment, "config", "check")
    assert refused.returncode == 1
    assert "policy_file" in refused.stderr
    assert said in refused.stderr


def test_the_sample_has_every_option_and_can_be_read(environment, tmp_path):
    sample = call(environment, "config", "sample").stdout
    for group, options in list_options():
        assert f"[{group or 'DEFAULT'}]" in sample
        for option in options:
            assert f"#{option.name} =" in sample
    assert "#www_authenticate_uri" in sample
    (tmp_path / "placement.conf").write_text(sample)
    assert call(environment, "config", "check").returncode == 0
    uncommented = [
        line for line in sample.splitlines() if line and not line.startswith(("#", "["))
    ]
    assert uncommented == []


def test_the_policy_sample_has_every_rule_and_can_be_read(environment):
    sample = call(environment, "policy", "sample").stdout
    assert yaml.safe_load(sample) is None
    rules = yaml.safe_load(
        "\n".join(line[1:] for line in sample.splitlines() if line.startswith('#"'))
    )
    assert rules["placement:reshaper:reshape"] == "rule:service_api"
    assert "placement:allocation_candidates:list" in rules


def test_the_option_generator_knows_the_options():
    assert {group for group, _ in list_options()} >= {"placement", "placement_database", None}
    assert all(isinstance(one, cfg.Opt) for _, some in list_options() for one in some)
