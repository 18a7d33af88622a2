# SPDX-License-Identifier: Apache-2.0
"""The commands that show the options and their values."""

from contextlib import contextmanager

import pytest
import yaml

from tests.cli.processes import call, run
from tests.servers import usual_environment
from tests.silence import never_answering, not_there
from treeclaim import config
from treeclaim.config import list_options


@pytest.fixture
def environment(tmp_path):
    """The environment of a command with a configuration directory of its own."""
    return usual_environment(
        tmp_path,
        OS_API__AUTH_STRATEGY="noauth2",
        OS_PLACEMENT_CONFIG_DIR=str(tmp_path),
        OS_PLACEMENT_DATABASE__CONNECTION="mysql+pymysql://placement:hidden@127.0.0.1:1/placement",
    )


@pytest.fixture
def conf(tmp_path):
    """The file of options in the configuration directory."""
    return tmp_path / "placement.conf"


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


def run_check(environment):
    """Return the lines of `config check`, and its exit code."""
    result = call(environment, "config", "check")
    assert "Traceback" not in result.stderr
    return (result.stdout + result.stderr).splitlines(), result.returncode


def find_line(lines, text):
    (match,) = [line for line in lines if text in line]
    return match


LOGIN = "auth_url = http://127.0.0.1:1/v3\nusername = placement\npassword = hidden"
MEMCACHED = f"[keystone_authtoken]\nauth_type = password\nmemcached_servers = 127.0.0.1:1\n{LOGIN}"


WARNINGS = (
    ("[placement_database]\nslave_connection = postgresql://a:b@c/d", 2, "every read goes to"),
    ("[placement_database]\nconnection_trace = true", 2, "connection_debug"),
    ("[workarounds]\noptimize_for_wide_provider_trees = true", 2, "always pruned"),
    ("[oslo_policy]\npolicy_file = /nowhere/policy.yaml", 2, "policy.yaml; the defaults apply"),
    ("[placement]\n# max_x = 1\nmax_candidate = 7", 3, "'max_allocation_candidates'"),
    ("[DEFAULT]\ndebug = false\ntransport_url = rabbit://x", 3, "unknown option transport_url"),
    ("\n\n[nobody]\nknows = this", 3, "unknown section [nobody]"),
)
ERRORS = (
    ("[keystone_authtoken]\n\ncafile = /nowhere/ca.pem", 3, "/nowhere/ca.pem"),
    ("[DEFAULT]\nlog_dir = /nowhere/log", 2, "/nowhere/log"),
    ("[DEFAULT]\nlog_file = /dev/null/x.log", 2, "/dev/null"),
    ("[DEFAULT]\nlog_config_append = /nowhere/logging.ini", 2, "/nowhere/logging.ini"),
    ("[placement]\nmax_allocation_candidates = many", 2, "max_allocation_candidates"),
    ("[api]\nauth_strategy = none", 2, "auth_strategy"),
    ("[placement]\nnothing", 2, "nothing"),
    ("[DEFAULT]\nuse_journal = maybe", 2, "use_journal"),
    ("[DEFAULT]\nlog_rotate_interval = never", 2, "log_rotate_interval"),
    ("[cors]\nallow_credentials = maybe", 2, "allow_credentials"),
    ("[keystone_authtoken]\nhttp_connect_timeout = soon", 2, "http_connect_timeout"),
    ("[keystone_authtoken]\nauth_type = nobody", 2, "auth_type"),
    ("[DEFAULT]\nuse_journal = true", 2, "needs the Python package systemd-python"),
    ("[DEFAULT]\npublish_errors = true", 2, "publish_errors is not supported"),
    ("[DEFAULT]\nlog_config_append = {folder}/logging.ini", 2, "logging cannot be set up"),
    ("[placement_database]\nconnection = nonsense://x/y", 2, "connection: "),
    ("[placement_database]\nconnection = mysql+nodriver://x/y", 2, "connection: "),
    ("[placement_database]\nconnection = sqlite:////no/x.db", 2, "there is no folder /no"),
    ("[placement_database]\nconnection = sqlite://", 2, "connection: "),
    ("[keystone_authtoken]\nmemcached_servers = a:1\nauth_type = password", 2, "auth_url"),
    (f"{MEMCACHED}\nmemcache_security_strategy = MAC", 3, "memcache_secret_key must be defined"),
    (f"{MEMCACHED}\nmemcache_sasl_enabled = true", 3, "No module named 'bmemcached'"),
)


@pytest.mark.parametrize(
    ("kind", "content", "number", "message"),
    [("warning", *row) for row in WARNINGS] + [("error", *row) for row in ERRORS],
    ids=range(len(WARNINGS + ERRORS)),
)
def test_finding_is_named_with_file_and_line(environment, conf, kind, content, number, message):
    (conf.parent / "logging.ini").write_text("[loggers]\nkeys = root\n")
    conf.write_text(content.format(folder=conf.parent) + "\n")
    if kind == "error":
        del environment["OS_API__AUTH_STRATEGY"]
    if "\nconnection =" in content:
        del environment["OS_PLACEMENT_DATABASE__CONNECTION"]
    lines, code = run_check(environment)
    assert code == (1 if kind == "error" else 0)
    findings = [line for line in lines if line.startswith(kind)]
    assert any(f"{conf}:{number}: " in line and message in line for line in findings), findings
    verdict = "cannot" if kind == "error" else "can"
    assert lines[-1].startswith(f"The configuration {verdict} be used")


def test_unknown_variables_and_options_are_counted_and_known_spellings_are_not(environment, conf):
    conf.write_text("[placement]\nmax = 7\n[api]\nauth-strategy = noauth2\n")
    environment["OS_PLACEMENT__MAX_CANDIDATES"] = "3"
    lines, code = run_check(environment)
    assert code == 0
    assert "OS_PLACEMENT__MAX_CANDIDATES" in find_line(lines, "this variable")
    assert not [line for line in lines if line.startswith("warning") and "strategy" in line]
    assert lines[-1] == "The configuration can be used; look at the 3 warnings."


def test_database_that_cannot_be_used_yet_is_a_warning(environment, tmp_path):
    lines, code = run_check(environment)
    assert code == 0
    assert find_line(lines, "the database does not answer").startswith("warning OS_PLACEMENT_DAT")
    file = tmp_path / "placement.db"
    environment["OS_PLACEMENT_DATABASE__CONNECTION"] = f"sqlite:///{file}"
    assert find_line(run_check(environment)[0], f"no file {file} yet").startswith("warning ")
    assert not file.exists()
    file.touch()
    assert find_line(run_check(environment)[0], "has no Placement schema").startswith("warning ")
    call(environment, "db", "sync")
    assert run_check(environment)[0][-1] == "The configuration can be used."


def test_unknown_or_undefined_policy_rules_are_named(environment, tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(
        '"helper": "role:helper"\n'
        '"placement:usages": "rule:helper or rule:nobody"\n'
        '"placement:usage": "role:admin"\n'
        '"placement:reshaper:reshape": "rule:service_api"\n'
    )
    environment["OS_OSLO_POLICY__POLICY_FILE"] = str(file)
    lines, code = run_check(environment)
    assert code == 0
    unknown = find_line(lines, "'placement:usage'")
    assert unknown.startswith("warning OS_OSLO_POLICY__POLICY_FILE: ")
    assert "'placement:usages'" in unknown
    assert find_line(lines, "rule:nobody").startswith("warning ")
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


@pytest.mark.parametrize("text", POLICY_TEXTS, ids=range(len(POLICY_TEXTS)))
def test_any_policy_file_is_judged_in_words(environment, tmp_path, capfd, text):
    (tmp_path / "policy.yaml").write_text(text)
    lines, code = run_check(environment)
    assert any(line.startswith("error") for line in lines) == (code == 1)
    assert "Traceback" not in "".join((*lines, *capfd.readouterr()))


@contextmanager
def refusing():
    """The address of a port without a listener."""
    yield "127.0.0.1:1"


@contextmanager
def hanging():
    """The address of a server that accepts connections and never answers."""
    with never_answering() as (address, _):
        yield address


@pytest.mark.slow
@pytest.mark.parametrize("silent", [refusing, hanging, not_there])
def test_unresponsive_memcached_is_a_warning(environment, conf, silent):
    del environment["OS_API__AUTH_STRATEGY"]
    with silent() as address:
        servers = f"memcached_servers = {address}"
        conf.write_text(MEMCACHED.replace("memcached_servers = 127.0.0.1:1", servers))
        lines, code = run_check(environment)
    assert code == 0, lines
    assert f"{address} does not respond" in find_line(lines, "warning /")


def test_a_check_leaves_no_log_file(environment, tmp_path):
    (tmp_path / "placement.conf").write_text(f"[DEFAULT]\nlog_dir = {tmp_path}\n")
    before = set(tmp_path.iterdir())
    run_check(environment)
    assert set(tmp_path.iterdir()) == before
