# SPDX-License-Identifier: Apache-2.0
"""The logging that deployment tools configure for Placement governs the service, without a line twice."""

import subprocess
import sys

import httpx
import pytest

from tests.servers import eventually, service_environment, serving

pytestmark = pytest.mark.slow

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
REQUEST = '"GET /resource_providers" status: 200'

LOGS = """
import logging
from treeclaim import config, log_queue, logs
from treeclaim.log_lines import REQUESTS, RequestRecord

logs.set_up_logging(config.load(config_files=[]).options, config.PROJECT)
log_queue.start_log_thread()
if REQUESTS.isEnabledFor(logging.INFO):
    ids = {"request_id": "req-1", "global_request_id": None}
    REQUESTS.handle(RequestRecord("a request", (), {}, ids, {}))
logging.getLogger("treeclaim.server").info("a start")
"""
"""Logs a request and the start of a server as a service does, which takes longer to start."""

HANDLERS = """\
[handlers]
keys = stdout, null
[formatters]
keys = context, default
[handler_null]
class = logging.NullHandler
formatter = default
args = ()
[handler_stdout]
class = StreamHandler
args = (sys.stdout,)
formatter = context
[formatter_context]
class = oslo_log.formatters.ContextFormatter
datefmt = %Y-%m-%d %H:%M:%S
[formatter_default]
format = %(message)s
"""
NAMES = {"placement": "placement", "requests": "placement.requestlog", "treeclaim": "treeclaim"}


def configured(**loggers):
    """A file of Python's logging, by level, handler and propagation of each logger."""
    text = f"[loggers]\nkeys = {', '.join(loggers)}\n{HANDLERS}"
    for name, (level, handler, *propagate) in loggers.items():
        text += f"[logger_{name}]\nlevel = {level}\nhandlers = {handler}\n"
        if name in NAMES:
            text += f"qualname = {NAMES[name]}\npropagate = {(*propagate, 1)[0]}\n"
    return text


# The file of openstack-helm: the root logger writes nowhere, `placement` to standard output.
HELM = {"root": ("WARNING", "null"), "placement": ("INFO", "stdout")}
FILES = {
    "helm": (configured(**HELM), 1, 1),
    # openstack-helm with debug: everything by the root logger, `placement` by the same handler.
    "helm debug": (configured(root=("DEBUG", "stdout"), placement=("DEBUG", "stdout")), 1, 1),
    "no requests": (configured(**HELM, requests=("WARNING", "null")), 0, 1),
    "requests alone": (
        configured(**HELM | {"placement": ("WARNING", "null")}, requests=("INFO", "stdout", 0)),
        1,
        0,
    ),
    "our names": (configured(**HELM, treeclaim=("WARNING", "stdout")), 0, 0),
}


def count_lines(folder, **options):
    """Return how many lines of requests and of starts are written with some options."""
    ended = subprocess.run(
        [sys.executable, "-c", LOGS],
        env=environment_of(folder, options),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return ended.stdout.count("a request"), ended.stdout.count("a start")


def environment_of(folder, options):
    variables = {f"OS_DEFAULT__{name.upper()}": value for name, value in options.items()}
    return service_environment(folder, **variables)


def serve_request(folder, **options):
    """Run a service for one request."""
    with serving(environment_of(folder, options), folder, "--workers=1") as server:
        httpx.get(f"{server.url}/resource_providers", headers=HEADERS).raise_for_status()
        assert server.stop() == 0


@pytest.mark.parametrize("name", FILES)
def test_placement_logging_file_controls_own_loggers(tmp_path, name):
    text, requests, starts = FILES[name]
    file = tmp_path / "logging.conf"
    file.write_text(text)
    assert count_lines(tmp_path, log_config_append=str(file)) == (requests, starts)


@pytest.mark.parametrize(
    ("levels", "requests", "starts"),
    [
        ("placement=WARNING", 0, 0),
        ("placement.requestlog=WARNING", 0, 1),
        ("placement=WARNING,placement.requestlog=INFO", 1, 0),
        ("placement=WARNING,treeclaim=INFO", 1, 1),
        ("amqp=WARN,sqlalchemy=WARN", 1, 1),
    ],
)
def test_placement_default_log_levels_control_own_loggers(tmp_path, levels, requests, starts):
    assert count_lines(tmp_path, default_log_levels=levels) == (requests, starts)


def test_kolla_log_folder_has_one_file(tmp_path):
    folder = tmp_path / "log" / "placement"
    folder.mkdir(parents=True)
    serve_request(tmp_path, debug="False", log_dir=str(folder))
    (file,) = folder.iterdir()
    assert file.name == "placement-api.log"
    assert file.read_text().count(REQUEST) == 1


def test_rhoso_rotates_by_size(tmp_path):
    file = tmp_path / "placement.log"
    serve_request(
        tmp_path,
        debug="true",
        log_file=str(file),
        log_rotation_type="size",
        max_logfile_count="1",
        max_logfile_size_mb="20",
    )
    eventually(file.exists, "the log is written")
    assert file.read_text().count(REQUEST) == 1
