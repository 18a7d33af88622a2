# SPDX-License-Identifier: Apache-2.0
"""Tests do not read all certificate authorities of the machine, and what is installed for them does."""

import os
import ssl
import subprocess
import sys

from tests import authorities
from tests.servers import usual_environment

HOW_MANY = "import ssl; print(len(ssl.create_default_context().get_ca_certs()))"


def test_tests_and_their_children_trust_one_authority(tmp_path):
    assert len(ssl.create_default_context().get_ca_certs()) == 1
    command = [sys.executable, "-c", HOW_MANY]
    result = subprocess.run(
        command, env=usual_environment(tmp_path), capture_output=True, check=True
    )
    assert result.stdout.strip() == b"1"


def test_package_installation_uses_the_authorities_of_the_machine():
    usual = os.environ[authorities._USUAL]
    with authorities.those_of_the_machine():
        assert os.environ.get(authorities.VARIABLE, "") == usual
    assert len(ssl.create_default_context().get_ca_certs()) == 1
