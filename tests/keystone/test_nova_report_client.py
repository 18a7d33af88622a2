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


def test_novas_client_gets_what_it_expects_from_every_method(keystone, service, tmp_path):
    assert unused(keystone, tmp_path, "report_client.py") == []


def test_what_servers_drew_follows_what_nova_does_and_its_commands_do_no_harm(
    keystone, service, tmp_path
):
    assert unused(keystone, tmp_path, "nova_holds.py") == []


def test_what_devices_consume_and_their_conditions_last_whatever_nova_does(
    keystone, service, tmp_path
):
    assert unused(keystone, tmp_path, "nova_devices.py") == []
