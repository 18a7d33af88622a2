# SPDX-License-Identifier: Apache-2.0
"""The commands that show the options and their values."""

from contextlib import contextmanager

import pytest
import yaml
from keystonemiddleware.auth_token import _memcache_crypt

from tests.cli.processes import call, run
from tests.servers import usual_environment
from tests.silence import never_answering, not_there
from treeclaim import config
from treeclaim.api.policy_rules import list_rules
from treeclaim.api.protocol.policy import load_rules
from treeclaim.config import list_options
from treeclaim.model.errors import PolicyFileError


@pytest.fixture
def environment(tmp_path):
    """The environment of a command with a configuration directory of its own."""
    return usual_environment(
        tmp_path,
        OS_API__AUTH_STRATEGY="noauth2",
        OS_PLACEMENT_CONFIG_DIR=str(tmp_path),
        OS_PLACEMENT_DATABASE__CONNECTION="mysql+pymysql://placement:hidden@127.0.0.1:1/placement",
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


def test_stock_placement_conf_is_accepted(tmp_path):
    path = tmp_path / "placement.conf"
    path.write_text(STOCK)
    loaded = config.load(config_files=[str(path)])
    assert loaded.options.debug is False
    assert loaded.options.api.auth_strategy == "keystone"
    assert loaded.options.cors.allowed_origin
    assert "PLACEMENT_DBPASS@controller" in loaded.database.url


def test_check_shows_keystone_options_without_secrets(environment, tmp_path):
    (tmp_path / "placement.conf").write_text(STOCK)
    shown = call(environment, "config", "check").stdout
    assert "[keystone_authtoken]/auth_url" in shown
    assert "PLACEMENT_PASS" not in shown


def test_check_shows_values_with_their_sources(environment, tmp_path):
    file = tmp_path / "placement.conf"
    file.write_text("[placement]\nmax_allocation_candidates = 7\n[nobody]\nknows = this\n")
    environment["OS_API__AUTH_STRATEGY"] = "noauth2"
    environment["OS_PLACEMENT_DATABASE__CONNECTION_PARAMETERS"] = "password=hidden"
    shown = call(environment, "config", "check")
    assert shown.returncode == 0
    lines = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines()}
    assert lines["[placement]/max_allocation_candidates"] == ["=", "7", "#", f"{file}:2"]
    assert lines["[api]/auth_strategy"] == ["=", "noauth2", "#", "OS_API__AUTH_STRATEGY"]
    assert (
        lines["[placement_database]/connection"][1] == "mysql+pymysql://****@127.0.0.1:1/placement"
    )
    assert lines["[placement_database]/connection_parameters"][1] == "****"
    assert "hidden" not in shown.stdout
    assert "[placement]/randomize_allocation_candidates" not in lines
    every = call(environment, "config", "check", "--all").stdout
    assert "[placement]/randomize_allocation_candidates" in every


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


def check_of(environment):
    """Return the lines of `config check`, and its exit code."""
    result = call(environment, "config", "check")
    assert "Traceback" not in result.stderr
    return (result.stdout + result.stderr).splitlines(), result.returncode


def the_line(lines, text):
    (match,) = [line for line in lines if text in line]
    return match


def test_unknown_options_and_sections_are_named_with_file_and_line(environment, tmp_path):
    file = tmp_path / "placement.conf"
    file.write_text(
        "[placement]\n# max_x = 1\nmax_allocation_candidate = 7\n\n[nobody]\nknows = this\n"
        "[api]\nauth-strategy = noauth2\n[DEFAULT]\ndebug = false\ntransport_url = rabbit://x\n"
    )
    environment["OS_PLACEMENT__MAX_CANDIDATES"] = "3"
    lines, code = check_of(environment)
    assert code == 0
    line = the_line(lines, "unknown option max_allocation_candidate ")
    assert line.startswith(f"warning {file}:3: ")
    assert "max_allocation_candidates" in line
    assert the_line(lines, "[nobody]").startswith(f"warning {file}:5: ")
    assert the_line(lines, "unknown option transport_url").startswith(f"warning {file}:11: ")
    assert "OS_PLACEMENT__MAX_CANDIDATES" in the_line(lines, "this variable")
    assert not [line for line in lines if line.startswith("warning") and "strategy" in line]
    assert lines[-1] == "The configuration can be used; look at the 5 warnings."


@pytest.mark.parametrize(
    ("content", "number", "message"),
    [
        ("[keystone_authtoken]\n\ncafile = /nowhere/ca.pem\n", 3, "/nowhere/ca.pem"),
        ("[DEFAULT]\nlog_dir = /nowhere/log\n", 2, "/nowhere/log"),
        ("[DEFAULT]\nlog_file = /dev/null/x.log\n", 2, "/dev/null"),
        ("[DEFAULT]\nlog_config_append = /nowhere/logging.ini\n", 2, "/nowhere/logging.ini"),
        ("[placement]\nmax_allocation_candidates = many\n", 2, "max_allocation_candidates"),
        ("[api]\nauth_strategy = none\n", 2, "auth_strategy"),
        ("[placement]\nnothing\n", 2, "nothing"),
        ("[DEFAULT]\nuse_journal = maybe\n", 2, "use_journal"),
        ("[DEFAULT]\nlog_rotate_interval = never\n", 2, "log_rotate_interval"),
        ("[cors]\nallow_credentials = maybe\n", 2, "allow_credentials"),
        ("[keystone_authtoken]\nhttp_connect_timeout = soon\n", 2, "http_connect_timeout"),
        ("[keystone_authtoken]\nauth_type = nobody\n", 2, "auth_type"),
        ("[DEFAULT]\nuse_journal = true\n", 2, "needs the Python package systemd-python"),
        ("[DEFAULT]\npublish_errors = true\n", 2, "publish_errors is not supported"),
        ("[DEFAULT]\nlog_config_append = {folder}/logging.ini\n", 2, "logging cannot be set up"),
    ],
    ids=range(15),
)
def test_unusable_value_is_an_error_with_file_and_line(
    environment, tmp_path, content, number, message
):
    file = tmp_path / "placement.conf"
    file.write_text(content.format(folder=tmp_path))
    (tmp_path / "logging.ini").write_text("[loggers]\nkeys = root\n")
    del environment["OS_API__AUTH_STRATEGY"]
    lines, code = check_of(environment)
    assert code == 1
    errors = [line for line in lines if line.startswith("error")]
    assert any(f"{file}:{number}: " in line and message in line for line in errors), lines
    assert lines[-1].startswith("The configuration cannot be used: ")


@pytest.mark.parametrize(
    "url", ["nonsense://x/y", "mysql+nodriver://x/y", "sqlite:////no/x.db", "sqlite://"]
)
def test_invalid_database_url_is_an_error(environment, url):
    environment["OS_PLACEMENT_DATABASE__CONNECTION"] = url
    lines, code = check_of(environment)
    assert code == 1
    assert "OS_PLACEMENT_DATABASE__CONNECTION" in the_line(lines, "error  ")
    assert lines[-1] == "The configuration cannot be used: 1 error."


def test_database_that_cannot_be_used_yet_is_a_warning(environment, tmp_path):
    lines, code = check_of(environment)
    assert code == 0
    assert the_line(lines, "the database does not answer").startswith("warning OS_PLACEMENT_DAT")
    file = tmp_path / "placement.db"
    environment["OS_PLACEMENT_DATABASE__CONNECTION"] = f"sqlite:///{file}"
    assert the_line(check_of(environment)[0], f"no file {file} yet").startswith("warning ")
    assert not file.exists()
    file.touch()
    assert the_line(check_of(environment)[0], "has no Placement schema").startswith("warning ")
    call(environment, "db", "sync")
    assert check_of(environment)[0][-1] == "The configuration can be used."


def test_unknown_or_undefined_policy_rules_are_named(environment, tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(
        '"helper": "role:helper"\n'
        '"placement:usages": "rule:helper or rule:nobody"\n'
        '"placement:usage": "role:admin"\n'
        '"placement:reshaper:reshape": "rule:service_api"\n'
    )
    environment["OS_OSLO_POLICY__POLICY_FILE"] = str(file)
    lines, code = check_of(environment)
    assert code == 0
    unknown = the_line(lines, "'placement:usage'")
    assert unknown.startswith("warning OS_OSLO_POLICY__POLICY_FILE: ")
    assert "'placement:usages'" in unknown
    assert the_line(lines, "rule:nobody").startswith("warning ")
    assert not [line for line in lines if "'helper'" in line]


@pytest.mark.slow
def test_invalid_values_and_unknown_options_are_reported_together(environment, tmp_path):
    file = tmp_path / "placement.conf"
    file.write_text(
        "[placement_database]\nconnection = sqlite://\nmax_retrys = 1\nmax_retries = many\n"
        "[treeclaim]\nsearch_seconds = long\n[keystone_authtoken]\nusername = u\n"
    )
    checked = call(environment, "config", "check", "--config-file", str(file))
    lines = checked.stderr.splitlines()
    assert [line.split(": ")[0] for line in lines[:-1]] == [
        f"warning {file}:3",
        f"error   {file}:4",
        f"error   {file}:6",
    ]
    assert lines[1].endswith(
        "[placement_database]/max_retries: invalid literal for int() with base 10: 'many'"
    )
    assert lines[-1] == "The configuration cannot be used: 2 errors."
    refused = run(environment, "serve", "--config-file", str(file))
    assert "max_retries" in refused.stderr
    assert "search_seconds" in refused.stderr
    assert "LocationInfo" not in refused.stderr


POLICY_TEXTS = (
    "words",
    "- a list",
    "null",
    '"placement:usages":',
    '"placement:usages": 5',
    '"placement:usages": [1]',
    '"placement:usages": [[]]',
    '"placement:usages": {"role": "admin"}',
    '"placement:usages": !!python/object:os.system x',
    '"placement:usages": "role:admin or ("',
    '"placement:usages": "role:%(project"',
    '"placement:usages": "rule:nobody"',
    '"placement:usages": "rule:placement:usages"',
    '"placement:usages": "@"\n"placement:usages": "!"',
    "a: b: c",
    "<<: [1]",
    "\x00",
)


@pytest.mark.parametrize("place", ["policy.yaml", "policy.d/10-more.yaml"])
@pytest.mark.parametrize("text", POLICY_TEXTS, ids=range(len(POLICY_TEXTS)))
def test_check_and_service_refuse_the_same_policy_files(environment, tmp_path, capfd, text, place):
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    configured = tmp_path / "placement.conf"
    configured.write_text("[placement_database]\nconnection = sqlite:///x.db\n")
    try:
        load_rules(config.load(config_files=[str(configured)]).options, list_rules())
        is_refused = False
    except PolicyFileError:
        is_refused = True
    lines, code = check_of(environment)
    assert (code == 1) == is_refused, lines
    assert any(line.startswith("error") for line in lines) == is_refused
    assert "Traceback" not in "".join((*lines, *capfd.readouterr()))


KEYSTONE = """\
[api]
auth_strategy = keystone
[keystone_authtoken]
auth_type = password
memcached_servers = 127.0.0.1:1
"""
ADDRESS = "auth_url = http://127.0.0.1:1/v3\nusername = placement\npassword = hidden"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "auth_url"),
        (f"{ADDRESS}\nmemcache_security_strategy = MAC", "memcache_secret_key must be defined"),
        (f"{ADDRESS}\nmemcache_sasl_enabled = true", "No module named 'bmemcached'"),
    ],
)
def test_incomplete_keystone_options_are_an_error(environment, tmp_path, options, message):
    environment.pop("OS_API__AUTH_STRATEGY", None)
    (tmp_path / "placement.conf").write_text(f"{KEYSTONE}{options}\n")
    lines, code = check_of(environment)
    assert code == 1
    assert any(message in line for line in lines if line.startswith("error"))


@pytest.mark.parametrize("strategy", ["MAC", "ENCRYPT"])
def test_token_cache_without_its_cryptography_is_an_error(
    environment, tmp_path, monkeypatch, strategy
):
    """As where the package is not installed; the library notices with the first token."""
    monkeypatch.setattr(_memcache_crypt, "ciphers", None)
    environment.pop("OS_API__AUTH_STRATEGY", None)
    secret = f"memcache_security_strategy = {strategy}\nmemcache_secret_key = secret\n"
    (tmp_path / "placement.conf").write_text(f"{KEYSTONE}{ADDRESS}\n{secret}")
    lines, code = check_of(environment)
    errors = [line for line in lines if line.startswith("error")]
    assert (code, len(errors)) == ((1, 1) if strategy == "ENCRYPT" else (0, 0)), lines


@contextmanager
def refusing():
    """The address of a port at which nobody listens."""
    yield "127.0.0.1:1"


@contextmanager
def hanging():
    """The address of a server that accepts connections and never answers."""
    with never_answering() as (address, _):
        yield address


@pytest.mark.slow
@pytest.mark.parametrize("silent", [refusing, hanging, not_there])
def test_unresponsive_memcached_is_a_warning(environment, tmp_path, silent):
    environment.pop("OS_API__AUTH_STRATEGY", None)
    with silent() as address:
        text = KEYSTONE.replace("127.0.0.1:1", address)
        (tmp_path / "placement.conf").write_text(f"{text}{ADDRESS}\n")
        lines, code = check_of(environment)
    assert code == 0, lines
    assert f"{address} does not answer" in the_line(lines, "warning /")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "[placement_database]\nslave_connection = postgresql://a:b@c/d\n",
            "every read goes to",
        ),
        ("[placement_database]\nconnection_trace = true\n", "connection_debug"),
        ("[workarounds]\noptimize_for_wide_provider_trees = true\n", "always pruned"),
        ("[oslo_policy]\npolicy_file = /nowhere/policy.yaml\n", "policy.yaml; the defaults apply"),
    ],
    ids=["slave_connection", "connection_trace", "wide_trees", "policy_file"],
)
def test_an_option_without_effect_is_named_with_its_line(environment, tmp_path, content, message):
    path = tmp_path / "placement.conf"
    path.write_text(content)
    environment["OS_PLACEMENT_CONFIG_DIR"] = str(tmp_path)
    lines, code = check_of(environment)
    assert code == 0
    assert the_line(lines, message).startswith(f"warning {path}:2: ")


def test_a_check_leaves_no_log_file(environment, tmp_path):
    (tmp_path / "placement.conf").write_text(f"[DEFAULT]\nlog_dir = {tmp_path}\n")
    before = set(tmp_path.iterdir())
    check_of(environment)
    assert set(tmp_path.iterdir()) == before
