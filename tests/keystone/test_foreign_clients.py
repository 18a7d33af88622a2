# SPDX-License-Identifier: Apache-2.0
"""Nova's own client and openstacksdk, as their users use them, against a service behind Keystone."""

import subprocess
from pathlib import Path

import pytest

from tests.environments import environment_of
from tests.keystone.keystone_server import REGION
from tests.servers import usual_environment

pytestmark = pytest.mark.slow

_SCRIPTS = Path(__file__).parent / "scripts"
_NOVA_CONFIGURATION = """\
[DEFAULT]
use_stderr = true
state_path = {folder}

[database]
connection = sqlite:///{folder}/nova.db

[api_database]
connection = sqlite:///{folder}/nova-api.db

[placement]
region_name = {region}
{login}
"""


def run_script(script, installed, environment, *arguments):
    """Run a script to its end where foreign software is installed."""
    result = subprocess.run(
        [str(installed / "bin" / "python"), str(_SCRIPTS / script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-5000:]


@pytest.mark.parametrize("script", ["report_client.py", "nova_holds.py", "nova_devices.py"])
def test_nova_operations_succeed(keystone, service, tmp_path, script):
    configuration = tmp_path / "nova.conf"
    login = keystone.service_options()
    configuration.write_text(
        _NOVA_CONFIGURATION.format(folder=tmp_path, region=REGION, login=login)
    )
    installed = environment_of("nova", "nova")
    run_script(script, installed, usual_environment(tmp_path), str(configuration))


def test_every_method_of_the_placement_proxy_works(keystone, service, tmp_path):
    installed = environment_of("clients", "python-openstackclient", "osc-placement")
    run_script("sdk.py", installed, usual_environment(tmp_path, **keystone.login()))
