# SPDX-License-Identifier: Apache-2.0
"""A log that cannot be written costs lines, never an answer."""

import logging
import re
from collections import Counter

import httpx
import pytest

from tests.faults.harness.service import client_of
from tests.paths import ROOT
from tests.ports import free_port
from tests.servers import eventually, service_environment, serving

REQUESTS = 1_300
"""More than the lines and threads that a stopped log could take with it before."""

pytestmark = pytest.mark.slow


class Broken(logging.StreamHandler):
    """A handler that raises in a method."""

    def __init__(self, method):
        super().__init__()
        setattr(self, method, self._fail)

    def _fail(self, *_arguments):
        raise RuntimeError("broken")


METHODS = ("emit", "filter", "flush", "format", "handle", "handleError", "acquire", "release")
"""The methods that logging calls for a line."""


@pytest.fixture
def log(tmp_path):
    """The log of a service, in a folder of its own."""
    folder = tmp_path / "log"
    folder.mkdir()
    return folder / "p.log"


def test_requests_are_answered_without_the_log_folder(tmp_path, log):
    environment = service_environment(tmp_path, OS_DEFAULT__LOG_FILE=str(log))
    with serving(environment, tmp_path, "--workers=1") as server:
        with client_of(server.url) as client:
            client.get("/resource_providers").raise_for_status()
            log.parent.rename(log.parent.with_suffix(".old"))
            statuses = [client.get("/resource_providers").status_code for _ in range(REQUESTS)]
            created = client.post("/resource_providers", json={"name": "written"})
            assert statuses == [200] * REQUESTS
            assert created.status_code == 200
            eventually(lambda: "log lines are lost" in server.log.read_text(), "one line says so")
            # The folder is there again, and so are the lines, with how many were lost.
            log.parent.mkdir()
            for _ in range(20):
                client.get("/resource_providers?name=afterwards").raise_for_status()
        assert server.stop() == 0
    complaints = Counter(
        re.findall(r"treeclaim (\d+): log lines are lost", server.log.read_text())
    )
    assert set(complaints.values()) == {1}, "standard error has one line of a process in a minute"
    assert "Traceback" not in server.log.read_text()
    log_text = log.read_text()
    assert log_text.count('"GET /resource_providers?name=afterwards" status: 200') == 20
    assert "log lines were lost" in log_text


def configuration_of(good):
    """A file for `log_config_append`: a handler that raises in each method, and a good one."""
    names = ["good", *METHODS]
    broken = [
        f"[handler_{name}]\nclass = tests.faults.test_broken_logs.Broken\nargs = ({name!r},)\n"
        for name in METHODS
    ]
    return "\n".join(
        [
            "[loggers]\nkeys = root\n\n[formatters]\nkeys =\n",
            f"[handlers]\nkeys = {', '.join(names)}\n",
            f"[logger_root]\nlevel = INFO\nhandlers = {', '.join(names)}\n",
            f"[handler_good]\nclass = handlers.WatchedFileHandler\nargs = ({str(good)!r},)\n",
            *broken,
        ]
    )


def test_raising_log_handlers_affect_no_response_or_other_handler(tmp_path, log):
    file = tmp_path / "logging.conf"
    file.write_text(configuration_of(log))
    admin = f"127.0.0.1:{free_port()}"
    environment = service_environment(
        tmp_path,
        OS_DEFAULT__LOG_CONFIG_APPEND=str(file),
        OS_TREECLAIM__ADMIN_LISTEN=admin,
        PYTHONPATH=str(ROOT),
    )
    with serving(environment, tmp_path, "--workers=1") as server:
        with client_of(server.url) as client:
            statuses = [client.get("/resource_providers").status_code for _ in range(200)]
            assert statuses == [200] * 200
        is_reported = eventually(
            lambda: "the thread log failed" in httpx.get(f"http://{admin}/ready").text, "named"
        )
        assert is_reported
        metrics = httpx.get(f"http://{admin}/metrics").text
        assert 'treeclaim_helper_failed_timestamp_seconds{thread="log"}' in metrics
        assert server.stop() == 0
    assert log.read_text().count('"GET /resource_providers" status: 200') == 200
