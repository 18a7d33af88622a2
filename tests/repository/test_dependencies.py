# SPDX-License-Identifier: Apache-2.0
"""The client and the commands of a cloud run without the packages of the service."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest

from tests.paths import ROOT
from tools.release import _find_requirements


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
from treeclaim.cli.registry import list_commands

for name, entry in list_commands().items():
    entry.load()().get_parser(name).format_help()
"""


def run_without_service(code, *, check):
    """Run Python code where no package of the service can be imported."""
    needed = set(map(normalised, _find_requirements(ROOT, ())))
    blocked = {
        module
        for module, distributions in packages_distributions().items()
        if needed.isdisjoint(map(normalised, distributions))
    } - {"treeclaim", "_distutils_hack"}
    assert {"numpy", "sqlalchemy", "falcon", "oslo_config"} <= blocked
    command = [sys.executable, "-c", BLOCKER.format(blocked=blocked) + code]
    return subprocess.run(command, capture_output=True, text=True, check=check)


def test_client_and_help_of_all_commands_need_no_package_of_the_service():
    run_without_service(LOADED, check=True)


@pytest.mark.parametrize("command", ["serve", "admin", "db sync", "config check", "upgrade check"])
def test_command_of_the_service_without_its_packages_names_them(command):
    code = f"from treeclaim.cli.main import main; sys.exit(main({command.split()!r}))"
    result = run_without_service(code, check=False)
    message = "treeclaim: this command needs the service: pip install 'treeclaim[service]'\n"
    assert (result.returncode, result.stderr) == (1, message)
