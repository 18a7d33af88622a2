# SPDX-License-Identifier: Apache-2.0
"""The files that deployment tools write for Placement, read by an environment as a release installs it.

The environment has the packages of `requirements/runtime.txt` and no others, so that an option that imports a
package late is found where only the tests' packages have it.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.deploy.test_loggers import HELM, configured
from tests.environments import environment_of
from tests.keystone.keystone_server import PASSWORD
from tests.keystone.service import stats_of
from tests.paths import ROOT
from tests.ports import free_port
from tests.servers import answers, running, usual_environment

pytestmark = pytest.mark.slow

STOCK = sorted(Path(__file__).with_name("stock").glob("*.conf"))
"""With the names of a folder, an address and a password in braces."""


@pytest.fixture(scope="module")
def python():
    """The interpreter of an environment without packages for development."""
    locked = ROOT / "requirements" / "runtime.txt"
    digest = hashlib.sha256(locked.read_bytes()).hexdigest()[:12]
    options = ("--no-deps", "--require-hashes", "--requirement", str(locked))
    return environment_of(f"runtime-{digest}", *options) / "bin" / "python"


@pytest.mark.parametrize("stock", STOCK, ids=lambda path: path.stem)
def test_stock_file_serves_tokens_in_the_environment_of_a_release(
    tmp_path, python, keystone, memcached, stock
):
    text = stock.read_text().format(
        folder=tmp_path, keystone=keystone.url, memcached=memcached, password=PASSWORD
    )
    (tmp_path / "placement.conf").write_text(text)
    (tmp_path / "ca.pem").write_text(Path(os.environ["SSL_CERT_FILE"]).read_text())
    if stock.stem == "openstack-helm":
        (tmp_path / "logging.conf").write_text(configured(**HELM))
        shutil.copy(stock.with_suffix(".policy.yaml"), tmp_path / "policy.yaml")
    environment = usual_environment(
        tmp_path,
        PYTHONPATH=str(ROOT / "src"),
        OS_PLACEMENT_CONFIG_DIR=str(tmp_path),
        OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP="true",
    )
    command = [str(python), "-m", "treeclaim"]

    def hits():
        return int(stats_of(memcached)["get_hits"])

    before = hits()
    checked = subprocess.run(
        [*command, "config", "check"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    findings = [
        line for line in checked.stderr.splitlines() if line.startswith(("error", "warning"))
    ]
    assert checked.returncode == 0, checked.stderr
    expected = ("unknown section", "no operation uses", "policy_file")
    assert all(any(part in line for part in expected) for line in findings), findings
    assert hits() - before == ("ENCRYPT" in text)
    url = f"http://127.0.0.1:{free_port()}"
    serve = [*command, "serve", f"--port={httpx.URL(url).port}", "--workers=1"]
    headers = {"x-auth-token": keystone.token("admin", "admin")}
    for _ in range(2):
        with running(serve, environment, tmp_path / "output.log", answers(url)):
            answer = httpx.get(f"{url}/resource_providers", headers=headers, timeout=60)
        assert answer.status_code == 200, (tmp_path / "output.log").read_text()
    # A token that one process has stored in memcached is found by the next one.
    assert hits() - before == 2 * ("ENCRYPT" in text)
