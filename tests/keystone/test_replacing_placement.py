# SPDX-License-Identifier: Apache-2.0
"""The page about replacing a running Placement is followed, command by command."""

import re
import shutil
import subprocess
import sys
import uuid

import pytest

from tests.environments import environment_of, peer_programs
from tests.keystone.service import configuration_for
from tests.paths import ROOT
from tests.ports import free_port
from tests.servers import usual_environment

pytestmark = pytest.mark.slow

REGION = "Replaced"
PAGE = ROOT / "docs" / "deploy" / "replace-placement.md"

HOST, CELL, RACK, CONSUMER, PROJECT, USER = (str(uuid.uuid4()) for _ in range(6))

DATA = f"""\
openstack <<END || test $? -eq 1
resource class create CUSTOM_BATCH
trait create CUSTOM_FAST
resource provider create host-1 --uuid {HOST}
resource provider create numa-1 --uuid {CELL} --parent-provider {HOST}
resource provider inventory set {HOST} --resource DISK_GB=100 --resource CUSTOM_BATCH=3
resource provider inventory set {CELL} --resource VCPU=8 --resource MEMORY_MB=4096
resource provider trait set {CELL} --trait HW_NUMA_ROOT --trait CUSTOM_FAST
resource provider aggregate set {HOST} --generation 1 --aggregate {RACK}
resource provider allocation set {CONSUMER} \
--allocation rp={CELL},VCPU=2 --allocation rp={HOST},DISK_GB=10 \
--project-id {PROJECT} --user-id {USER}
END
"""


def blocks():
    """The commands of the page, block after block."""
    return re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_replacing_page_commands_succeed(keystone, tmp_path):
    # The session's own service may still run, on the address of the usual region.
    url = f"http://127.0.0.1:{free_port()}"
    keystone.offer(url, REGION)
    configuration = configuration_for(keystone, tmp_path)
    admin = f"127.0.0.1:{free_port()}"
    with configuration.open("a") as file:
        file.write(f"\n[treeclaim]\nadmin_listen = {admin}\n")
    _write_units(tmp_path, configuration, url)
    programs = tmp_path / "bin"
    programs.mkdir()
    shutil.copy(ROOT / "tests" / "keystone" / "scripts" / "systemctl", programs)
    command = programs / "treeclaim"
    command.write_text(f'#!/bin/bash\nexec {sys.executable} -m treeclaim "$@"\n')
    command.chmod(0o755)
    clients = environment_of("clients", "python-openstackclient", "osc-placement") / "bin"
    environment = usual_environment(tmp_path, **keystone.login() | {"OS_REGION_NAME": REGION})
    environment |= {"UNITS": str(tmp_path), "SERVICE_URL": url, "ADMIN": admin}
    del environment["OS_TREECLAIM__ADMIN_LISTEN"]
    environment["PATH"] = f"{programs}:{clients}:{environment['PATH']}"
    environment["OS_PLACEMENT_API_VERSION"] = "1.37"
    assert len(blocks()) == 6
    page = "\n".join(blocks())
    page = page.replace("/etc/placement/placement.conf", str(configuration))
    page = page.replace("127.0.0.1:8779", admin)
    script = f"set -exo pipefail\nsystemctl start placement-api\n{DATA}\n{page}"
    try:
        followed = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert followed.returncode == 0, followed.stderr[-4000:]
    finally:
        for unit in ("placement-api", "treeclaim"):
            subprocess.run([programs / "systemctl", "stop", unit], check=False, env=environment)
    before = (tmp_path / "before.json").read_text()
    written = ("numa-1", "CUSTOM_BATCH", "CUSTOM_FAST", "HW_NUMA_ROOT", RACK, CONSUMER)
    assert [path for path in written if path not in before] == []
    assert "replaced" in (tmp_path / "back.json").read_text()


def _write_units(folder, configuration, url):
    port = url.rsplit(":", 1)[1]
    (folder / "treeclaim.command").write_text(
        f"exec {sys.executable} -m treeclaim serve --port {port} --config-file {configuration}\n"
    )
    (folder / "placement-api.command").write_text(
        f"export OS_PLACEMENT_CONFIG_DIR={folder}\n"
        f"exec {peer_programs()}/gunicorn --workers=1 --threads=4 --timeout=600 --bind=127.0.0.1:{port} "
        "placement.wsgi.api:application\n"
    )
