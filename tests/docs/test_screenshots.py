# SPDX-License-Identifier: Apache-2.0
"""The pictures of the pages in the documentation."""

import re

from tests.paths import ROOT
from tools.screenshots import SHOTS

PICTURES = ROOT / "docs" / "pictures"


def test_documented_screenshots_are_those_generated():
    made = {f"{name}.png" for name in SHOTS}
    assert {file.name for file in PICTURES.glob("page-*.png")} == made
    for document in ("README.md", "docs/pages.md"):
        shown = set(re.findall(r"pictures/(page-[a-z]+\.png)", (ROOT / document).read_text()))
        assert shown
        assert shown <= made
