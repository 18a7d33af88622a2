# SPDX-License-Identifier: Apache-2.0
"""The client and the commands of a cloud run without the packages of the service."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest

from tests.paths import ROOT
from tools.release import _needed


def normalised(name):
    return re.sub(r"[-_.]+", "-", name).lower()


BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Blocker())
"""
LOADED = """
import treeclaim.client
from treeclaim.cli.registry import all_commands

missing = []
for name, entry in all_commands().items():
    try:
        entry.load()
    except ModuleNotFoundError:
        missing.append(name)
print(*sorted(missing), sep="\\n")
"""

OF_THE_SERVICE = {"config check", "config sample", "policy sample", "upgrade check"}


def run_without_service(code, *, check):
    """Run Python code where no package of the service can be imported."""
    needed = set(map(normalised, _needed(ROOT, ())))
    blocked = {
        module
        for module, distributions in packages_distributions().items()
        if needed.isdisjoint(map(normalised, distributions))
    } - {"treeclaim", "_distutils_hack"}
    assert {"numpy", "sqlalchemy", "falcon", "oslo_config"} <= blocked
    command = [sys.executable, "-c", BLOCKER.format(blocked=blocked) + code]
    return subprocess.run(command, capture_output=True, text=True, check=check)


def test_client_and_commands_of_a_cloud_need_no_package_of_the_service():
    missing = set(run_without_service(LOADED, check=True).stdout.splitlines())
    assert {name for name in missing if not name.startswith("db ")} == OF_THE_SERVICE


@pytest.mark.parametrize("command", ["serve", "admin"])
def test_server_without_packages_of_the_service_names_them(command):
    code = f"from treeclaim.cli.main import main; sys.exit(main([{command!r}]))"
    result = run_without_service(code, check=False)
    message = "treeclaim: this command needs the service: pip install 'treeclaim[service]'\n"
    assert (result.returncode, result.stderr) == (1, message)
