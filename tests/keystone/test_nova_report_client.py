# SPDX-License-Identifier: Apache-2.0
"""Nova's own client of this service, used by a real Nova as its services use it."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.environments import environment_of
from tests.keystone.keystone_server import PASSWORD, REGION
from tests.servers import usual_environment

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "scripts" / "report_client.py"

_CONFIGURATION = """\
[DEFAULT]
use_stderr = true
state_path = {folder}

[placement]
auth_url = {keystone}
auth_type = password
username = placement
password = {password}
project_name = service
user_domain_name = Default
project_domain_name = Default
region_name = {region}
"""


def test_novas_client_gets_what_it_expects_from_every_method(keystone, service, tmp_path):
    python = environment_of("nova", "nova") / "bin" / "python"
    configuration = tmp_path / "nova.conf"
    configuration.write_text(
        _CONFIGURATION.format(
            folder=tmp_path, keystone=keystone.url, password=PASSWORD, region=REGION
        )
    )
    done = subprocess.run(
        [str(python), str(SCRIPT), str(configuration)],
        env=usual_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert json.loads(done.stdout) == []
