# SPDX-License-Identifier: Apache-2.0
"""Nova's own client of this service, used by a real Nova as its services use it."""

import pytest

from tests.environments import environment_of
from tests.keystone.foreign import methods_unused_by
from tests.keystone.keystone_server import REGION
from tests.servers import usual_environment

pytestmark = pytest.mark.slow

_CONFIGURATION = """\
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


def unused(keystone, folder, script):
    """Run a script where Nova is installed, with the configuration of its services."""
    programs = environment_of("nova", "nova") / "bin"
    configuration = folder / "nova.conf"
    configuration.write_text(
        _CONFIGURATION.format(folder=folder, region=REGION, login=keystone.service_options())
    )
    return methods_unused_by(script, programs, usual_environment(folder), str(configuration))


def test_every_method_of_the_nova_client_works(keystone, service, tmp_path):
    assert unused(keystone, tmp_path, "report_client.py") == []


def test_nova_operations_keep_draws_of_servers_consistent(keystone, service, tmp_path):
    assert unused(keystone, tmp_path, "nova_holds.py") == []


def test_nova_operations_keep_device_consumption_and_conditions(keystone, service, tmp_path):
    assert unused(keystone, tmp_path, "nova_devices.py") == []
