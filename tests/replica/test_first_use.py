# SPDX-License-Identifier: Apache-2.0
"""The first change of a Forest imports no module, since other threads wait."""

import subprocess
import sys

from tests.paths import ROOT

_FIRST_CHANGE = """
import sys
from tests.forest.building import BEGINNING, CATALOGUE, Changes, forest_of, record

import treeclaim.replica
loaded = set(sys.modules)
forest = forest_of([record(1, inventories={"VCPU": 8})])
forest.apply(Changes(BEGINNING, False, [record(2, inventories={"VCPU": 4})], [], CATALOGUE))
print(*sorted(set(sys.modules) - loaded))
"""


def test_first_applied_change_imports_no_module():
    command = [sys.executable, "-c", _FIRST_CHANGE]
    result = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    assert result.stdout.split() == []
