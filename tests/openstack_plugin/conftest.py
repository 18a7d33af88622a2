# SPDX-License-Identifier: Apache-2.0
"""The `openstack` command, which takes seconds to import, once for all tests of the plugin."""

import os
import sys

import pytest

from tests.openstack_shell import Shell


@pytest.fixture(scope="package")
def shell():
    """Runs commands, each in the environment that it is given."""
    started = Shell(sys.executable, os.environ, "openstack.treeclaim.v1")
    yield started
    started.close()
