# SPDX-License-Identifier: Apache-2.0
"""Imports of tests, benchmark and tools are declared; `make lint` checks the package itself."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest

from tests.paths import ROOT

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
    given = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
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
