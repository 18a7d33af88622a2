# SPDX-License-Identifier: Apache-2.0
"""openstacksdk's placement proxy against a service behind Keystone: every method that it has."""

import pytest

from tests.environments import environment_of
from tests.keystone.foreign import methods_unused_by
from tests.servers import usual_environment

pytestmark = pytest.mark.slow


def test_every_method_of_the_placement_proxy_works(keystone, service, tmp_path):
    programs = environment_of("clients", "python-openstackclient", "osc-placement") / "bin"
    environment = usual_environment(tmp_path, **keystone.login())
    assert methods_unused_by("sdk.py", programs, environment) == []
