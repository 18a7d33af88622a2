# SPDX-License-Identifier: Apache-2.0
"""After logrotate has renamed the log file, each process writes to the new file."""

import gzip
import os
import re
import shutil
import signal
import subprocess

import psutil
import pytest

from tests.paths import ROOT
from tests.ports import free_port
from tests.server.processes.clients import HalfSentRequest, Load
from tests.servers import eventually, service_environment, serving
from treeclaim.server.processes.children import ADMIN_NAME, LOADER_NAME, WORKER_NAME

LOGROTATE = shutil.which("logrotate", path=f"{os.environ['PATH']}:/usr/sbin")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("logrotate"),
]


class Rotation:
    """The rotation of a service's log by the configuration that is in deploy/."""

    def __init__(self, folder):
        self.log = folder / "placement-api.log"
        self.old = folder / "placement-api.log.1"
        self._state = folder / "state"
        self._file = folder / "logrotate"
        text = (ROOT / "deploy" / "logrotate").read_text()
        self._file.write_text(text.replace("/var/log/placement/*.log", f"{self.log}"))
        self._file.chmod(0o600)

    def rotate(self):
        """Rotate, however young the log is."""
        command = [LOGROTATE, "--force", "--state", str(self._state), str(self._file)]
        subprocess.run(command, check=True, capture_output=True)

    def written(self):
        """The contents of the new file; empty while it does not exist."""
        return self.log.read_text() if self.log.exists() else ""

    def writers(self):
        """The processes that have a line in the new file."""
        begin = re.compile(r"^\S+ \S+ (\d+) [A-Z]+ ", re.MULTILINE)
        return {int(pid) for pid in begin.findall(self.written())}

    def requests(self):
        """The number of lines about requests in the old file and the new one."""
        return sum(
            text.count('"GET /resource_providers" status: 200')
            for text in (self.old.read_text(), self.written())
        )


def test_each_process_writes_to_the_rotated_log_without_losing_lines(tmp_path):
    rotation = Rotation(tmp_path)
    environment = service_environment(
        tmp_path,
        OS_DEFAULT__LOG_DIR=str(tmp_path),
        OS_TREECLAIM__ADMIN_LISTEN=f"127.0.0.1:{free_port()}",
    )
    with serving(environment, tmp_path, "--workers=2") as service:
        service.await_status("/ready", 200)
        workers = {worker.pid for worker in service.await_workers(2)}
        with Load(service.url) as load:
            eventually(lambda: load.answered > 20, "requests are answered")
            rotation.rotate()
            eventually(lambda: workers <= rotation.writers(), "both write to the new one")
        assert load.failures == []
        eventually(lambda: rotation.requests() == load.answered, "each has its line")
        # The loader logs which worker has ended.
        (loader,) = service.processes(LOADER_NAME)
        psutil.Process(min(workers)).kill()
        eventually(lambda: loader.pid in rotation.writers(), "so does the loader")
        lines = rotation.old.read_bytes()
        service.await_workers(2)
        former = service.processes(ADMIN_NAME, WORKER_NAME, LOADER_NAME)
        with HalfSentRequest(service.url) as request:
            service.send(signal.SIGHUP)
            eventually(lambda: "Stopping" in rotation.log.read_text(), "both leave")
            # One that is about to end finishes a request after another rotation.
            rotation.rotate()
            assert request.finish() == b"HTTP/1.1 200 OK\r\n"
        eventually(lambda: '"POST /resource_providers"' in rotation.written(), "it has its line")
        assert psutil.wait_procs(former, timeout=120)[1] == []
        assert service.stop() == 0
    packed = tmp_path / "placement-api.log.2.gz"
    assert gzip.decompress(packed.read_bytes()) == lines, "nobody wrote to it any more"
