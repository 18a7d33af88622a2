# SPDX-License-Identifier: Apache-2.0
"""Imports of tests, benchmark and tools are declared; `make lint` checks the package itself."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest

from tests.paths import ROOT
from tools.release import _needed

OWN = {"treeclaim", "tests", "bench", "tools"}
INSIDE_OTHER_PROGRAMS = "tests/keystone/scripts"
"""Scripts that run in environments of their own, with packages of other projects."""


def imported(folder):
    """The names of all modules that the files of a folder import, without their submodules."""
    for path in (ROOT / folder).rglob("*.py"):
        if INSIDE_OTHER_PROGRAMS in path.as_posix():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield node.module.partition(".")[0]


def normalised(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.slow
def test_every_import_of_tests_benchmark_and_tools_is_of_a_declared_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    given = [*project["dependencies"], *extras["service"], *extras["dev"]]
    declared = {normalised(re.match(r"[\w.-]+", text)[0]) for text in given}
    distributions = packages_distributions()
    names = {name for folder in ("tests", "bench", "tools") for name in imported(folder)}
    foreign = names - OWN - sys.stdlib_module_names
    assert "numpy" in foreign
    undeclared = [
        name
        for name in sorted(foreign)
        if not declared & set(map(normalised, distributions.get(name, [])))
    ]
    assert undeclared == []


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
