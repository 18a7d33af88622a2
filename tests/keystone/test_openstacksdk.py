# SPDX-License-Identifier: Apache-2.0
"""openstacksdk's placement proxy against a service behind Keystone: every method that it has."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.environments import environment_of
from tests.servers import usual_environment

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "scripts" / "sdk.py"


def test_every_method_of_the_placement_proxy_works(keystone, service, tmp_path):
    folder = environment_of("clients", "python-openstackclient", "osc-placement")
    done = subprocess.run(
        [str(folder / "bin" / "python"), str(SCRIPT)],
        env=usual_environment(tmp_path, **keystone.login()),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert json.loads(done.stdout) == []
