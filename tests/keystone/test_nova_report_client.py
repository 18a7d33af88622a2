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

[placement]
region_name = {region}
{login}
"""


def test_novas_client_gets_what_it_expects_from_every_method(keystone, service, tmp_path):
    programs = environment_of("nova", "nova") / "bin"
    configuration = tmp_path / "nova.conf"
    configuration.write_text(
        _CONFIGURATION.format(folder=tmp_path, region=REGION, login=keystone.service_options())
    )
    environment = usual_environment(tmp_path)
    assert methods_unused_by("report_client.py", programs, environment, str(configuration)) == []
