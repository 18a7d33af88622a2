# SPDX-License-Identifier: Apache-2.0
"""Typing errors, and leftovers in the environment, are refused in words, and never guessed or ignored."""

import sqlite3
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.processes import call, run
from tests.cli.services import run_refused_command, run_successful_command
from tests.paths import EXAMPLE
from tests.ports import free_port
from tests.servers import command_environment, usual_environment


@pytest.fixture
def offline(tmp_path):
    """The environment of commands with a database of their own."""
    return command_environment(tmp_path)


WRONG_USAGE = {
    "": "usage: treeclaim",
    "tree --dept 1": "not understood: --dept; did you mean '--depth'?",
    "plan defragment": "the following arguments are required: --mix",
    "plan drain": "HOST",
    "plan drain a --leave": "not allowed",
    "serve --workers 99999999999": "--workers",
    "serve --workers -1": "--workers",
    "serve --workers \u0664": "--workers",
    "serve --port 65536": "--port",
    "serve --unix-socket-mode 9": "--unix-socket-mode",
    "db prune --keep-hours nan": "--keep-hours",
    "db prune --keep-hours 1e300": "--keep-hours",
    "db prune --keep-hours=-1": "--keep-hours",
}
"""Messages by command lines that cannot be understood."""


@pytest.mark.parametrize("line", WRONG_USAGE, ids=range(len(WRONG_USAGE)))
def test_wrong_usage_has_exit_status_2(offline, line):
    assert WRONG_USAGE[line] in run_refused_command(offline, *line.split(), code=2)


def test_repeated_amounts_are_refused(offline):
    message = run_refused_command(offline, "claim", "resources=VCPU:2", "resources=DISK_GB:1")
    assert "resources is given more than once" in message


UNUSABLE_OPTIONS = {
    "serve": "treeclaim db sync",
    "serve --tls-certificate=/nowhere.pem": "--tls-key",
    "serve --unix-socket=/nowhere/placement.sock": "folder",
    "serve --unix-socket=/etc/passwd": "not a socket",
    "serve --worker-lifetime=1": "60",
    "serve --host 0.0.0.0": "--allow-noauth2",
    "serve --host placement.example": "--allow-noauth2",
}
"""Messages by command lines of a service that cannot start."""


@pytest.mark.slow
@pytest.mark.parametrize("line", UNUSABLE_OPTIONS, ids=range(len(UNUSABLE_OPTIONS)))
def test_failed_start_reports_its_reason(offline, line):
    message = run_refused_command(offline, *line.split(), f"--port={free_port()}")
    assert UNUSABLE_OPTIONS[line] in message


def test_a_database_without_tables_is_not_stamped(offline):
    message = run_refused_command(offline, "db", "stamp", "a082b8bb98d0")
    assert "treeclaim db sync" in message
    assert run_successful_command(offline, "db", "version") == "None\n"
    run_successful_command(offline, "db", "sync")
    for revision in ("", "head"):
        assert "a082b8bb98d0" in run_refused_command(offline, "db", "stamp", revision)
    run_successful_command(offline, "db", "stamp", "a082b8bb98d0")


@pytest.mark.slow
def test_os_cloud_option_overrides_the_environment(environment, tmp_path):
    (tmp_path / "clouds.yaml").write_text(
        f"""
clouds:
  here:
    auth_type: admin_token
    auth: {{endpoint: "{environment["TREECLAIM_ENDPOINT"]}", token: admin}}
"""
    )
    elsewhere = environment | {
        "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
        "TREECLAIM_ENDPOINT": "http://127.0.0.1:9",
    }
    assert "host-1" in run_successful_command(elsewhere, "tree", "--os-cloud", "here")
    elsewhere |= {"OS_CLOUD": "nowhere"}
    endpoint = environment["TREECLAIM_ENDPOINT"]
    assert "host-1" in run_successful_command(elsewhere, "tree", "--endpoint", endpoint)


def test_options_of_an_endpoint_may_precede_the_command(environment):
    elsewhere = environment | {"TREECLAIM_ENDPOINT": "http://127.0.0.1:9"}
    endpoint = environment["TREECLAIM_ENDPOINT"]
    assert "host-1" in run_successful_command(
        elsewhere, f"--endpoint={endpoint}", "--token", "admin", "tree"
    )
    assert "not understood: --endpoint" in run_refused_command(
        elsewhere, "--endpoint", endpoint, "db", "sync", code=2
    )


def test_a_token_is_never_dropped(environment):
    no_endpoint = {k: v for k, v in environment.items() if k != "TREECLAIM_ENDPOINT"}
    message = run_refused_command(no_endpoint | {"OS_CLOUD": "some"}, "tree", "--token", "x")
    assert "--endpoint" in message
    message = run_refused_command(environment, "tree", "--token", "x", "--os-cloud", "some")
    assert "--token" in message
    run_refused_command(
        environment, "tree", "--endpoint", "http://a", "--os-cloud", "some", code=2
    )


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (("tree",), ("treeclaim serve", "--endpoint", "--os-cloud")),
        (("load", str(EXAMPLE)), ("treeclaim serve",)),
        (("tree", "--os-cloud", "away"), ("--os-cloud",)),
        (("copy", "--from", "http://127.0.0.1:9", "--to", "http://127.0.0.1:9"), ("check",)),
    ],
    ids=["at an endpoint", "load", "at a cloud", "copy"],
)
def test_unreachable_service_gives_advice(offline, tmp_path, command, advice):
    (tmp_path / "clouds.yaml").write_text(
        "clouds: {away: {auth_type: admin_token, "
        "auth: {endpoint: 'http://127.0.0.1:9', token: x}}}"
    )
    elsewhere = offline | {
        "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
        "TREECLAIM_ENDPOINT": "http://127.0.0.1:9",
    }
    message = run_refused_command(elsewhere, *command)
    assert "no connection" in message
    assert "127.0.0.1:9" in message
    for text in advice:
        assert text in message


def test_os_variables_name_a_cloud(environment):
    elsewhere = environment | {
        "OS_AUTH_URL": "http://127.0.0.1:9/v3",
        "OS_USERNAME": "somebody",
        "OS_PASSWORD": "secret",
        "OS_PROJECT_NAME": "admin",
    }
    del elsewhere["TREECLAIM_ENDPOINT"]
    assert "127.0.0.1" in run_refused_command(elsewhere, "tree")


REFUSED = {
    "candidates --flavor-file nowhere.yaml": "nowhere.yaml",
    "candidates --flavor-file /dev/null": "/dev/null",
    "candidates vcpus=4": "--flavor-file",
    "candidates vcpu=4": "unknown 'vcpu'; known are resources, ",
    "candidates resource=VCPU:1": "'resources'",
    "candidates resources=MCPU:1": "MCPU",
    "candidates VCPU": "NAME=VALUE",
    "candidates": "the query is empty",
    "claim resources=VGPU:1000": "there is no candidate",
    "claim resources=VGPU:1 --number 30": "only 4 candidates",
    "claim resources=VCPU:1 --consumer x": "uuid",
    "release ../../resource_providers": "uuid",
    "allocation show nobody": "not a uuid",
    "provider show nobody": "no provider",
    "tree nobody": "nobody",
    "tree \ud800": "no provider",
    "tree --os-cloud nowhere": "cloud",
    "tree --endpoint http://127.0.0.1:99999": "not the URL of an endpoint",
    "tree --endpoint http://[::1": "http://[::1",
    "tree --endpoint http://\u00e9\udcff.example": "example",
    "tree --token new\nline": "token",
    "load /": "/",
    "load a\0b": "cannot be read",
}
"""Messages by command lines."""


@pytest.mark.parametrize("line", REFUSED, ids=range(len(REFUSED)))
def test_mistake_is_refused_in_words(environment, line):
    message = run_refused_command(environment, *line.split(" "))
    assert REFUSED[line] in message
    assert "unexpected" not in message


UNUSABLE = {
    "mix set day": ["", "[]", "{}", '{"requests": []}', '{"requests": {"a": 1}}'],
    "aggregate import": ["[]", "{", '{"rack": "seven"}', f'{{"{uuid.UUID(int=1)}": 7}}'],
    "audit --living-from": ["", "{}", '{"INSTANCE": []}', "not-a-uuid", '{"INSTANCE": ["x"]}'],
}
"""Texts of files by commands that cannot use them."""


@pytest.mark.parametrize(
    ("command", "text"),
    [(command, text) for command, texts in UNUSABLE.items() for text in texts],
)
def test_unusable_file_is_refused_by_name(environment, tmp_path, command, text):
    file = tmp_path / "unusable.json"
    file.write_text(text)
    code = 2 if command.startswith("audit") else 1
    for path in (file, tmp_path / "missing.json"):
        message = run_refused_command(environment, *command.split(), str(path), code=code)
        assert path.name in message or "not the uuid of an aggregate" in message


@pytest.mark.parametrize("url", ["nonsense://x/y", "sqlite", "mysql+nodriver://x/y"])
@pytest.mark.parametrize("command", ["serve", "admin", "upgrade check"])
def test_unsupported_database_url_names_the_option(offline, url, command):
    listen = {"OS_TREECLAIM__ADMIN_LISTEN": "127.0.0.1:0"}
    wrong = offline | listen | {"OS_PLACEMENT_DATABASE__CONNECTION": url}
    message = refused_for_database(wrong, command)
    assert "[placement_database]/connection" in message
    assert "unexpected" not in message


def refused_for_database(environment, command):
    """Run a command that the database must stop; return its message."""
    return run_refused_command(
        environment, *command.split(), code=255 if command == "upgrade check" else 1
    )


def test_file_that_is_not_a_database_is_reported(offline, tmp_path):
    (tmp_path / "placement.db").write_text("this is a text, and long enough to be looked at" * 40)
    for command in ("db version", "db prune", "db reset-feed", "db sync", "upgrade check"):
        assert "not a database" in refused_for_database(offline, command)


def test_empty_database_suggests_db_sync(offline, tmp_path):
    sqlite3.connect(tmp_path / "placement.db").close()
    for command in ("db prune", "db reset-feed", "db online_data_migrations", "upgrade check"):
        assert "db sync" in refused_for_database(offline, command)


@pytest.mark.parametrize("arguments", [("tree",), ("tree", "h\u00f6st")], ids=ascii)
def test_ascii_terminal_gets_only_ascii(environment, arguments):
    plain = environment | {"PYTHONIOENCODING": "ascii", "LANG": "C", "LC_ALL": "C"}
    result = run(plain, *arguments)
    assert "Traceback" not in result.stderr
    assert (result.stdout + result.stderr).isascii()
    assert result.stdout or result.returncode == 1


COMMANDS = (
    "candidates,explain,claim,release,tree,load,provider show,db,db stamp,db prune,"
    "config check,policy,upgrade check"
)
OPTIONS = "--endpoint --token --os-cloud --flavor-file --limit -f --config-file --keep-hours"
HOSTILE = (
    *OPTIONS.split(), "--project", "--number", "--consumer", "--depth", "--class", "json", "http://127.0.0.1:1",
    "/dev/null", "/", "-", "--", "=", "resources=VCPU:1", "resources=", "resources=VCPU:99999999999999999999",
    "required=!", "member_of=\udcff", "limit=x", "%s%n{}", "\x1b[31m", "[/]", "é", "\ud800", "", "-1", "nan",
    "host-1", "9" * 5000,
)  # fmt: skip


@pytest.mark.slow
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(COMMANDS.split(",")),
    st.lists(st.sampled_from(HOSTILE) | st.text(max_size=8), max_size=4),
)
def test_random_arguments_never_cause_a_traceback(environment, tmp_path, command, arguments):
    if command == "load":
        arguments = [word for word in arguments if word != "-"]
    database = {"OS_PLACEMENT_DATABASE__CONNECTION": f"sqlite:///{tmp_path / 'fuzz.db'}"}
    result = call(environment | database, *command.split(), *arguments)
    assert result.returncode in (0, 1, 2, 255), (result, result.stderr)
    assert "Traceback" not in result.stderr
    assert "unexpected" not in result.stderr, result.stderr


def test_unexpected_error_is_one_line_and_debug_shows_the_traceback(tmp_path, monkeypatch):
    def fail(*_arguments):
        raise ZeroDivisionError("some words")

    monkeypatch.setattr("treeclaim.cli.providers.tree.ListTrees.make_result", fail)
    environment = usual_environment(tmp_path)
    message = run_refused_command(environment, "tree")
    assert "some words" in message
    assert "TREECLAIM_DEBUG" in message
    result = call(environment | {"TREECLAIM_DEBUG": "1"}, "tree")
    assert "Traceback" in result.stderr
