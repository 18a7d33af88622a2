# SPDX-License-Identifier: Apache-2.0
"""The sources, parsed once for all who read them: that takes a second."""

import ast
from functools import cache

from tests.paths import ROOT

SOURCE = ROOT / "src" / "treeclaim"


@cache
def trees():
    """The tree of each module, by its path; nobody changes them."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in paths}
