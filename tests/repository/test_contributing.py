# SPDX-License-Identifier: Apache-2.0
"""Who follows CONTRIBUTING finds every file and folder that it names."""

import re

from tests.paths import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()


def named_paths():
    """What stands in backticks and looks like a path of the repository."""
    in_code = re.findall(r"`([^`\n]+)`", PAGE)
    return {text for text in in_code if re.match(r"(src|tests|docs|bench|tools|\.ci)/\S+$", text)}


def test_every_path_that_the_page_names_exists():
    assert len(named_paths()) > 25
    assert [path for path in sorted(named_paths()) if not (ROOT / path).exists()] == []


def test_every_room_is_on_the_map():
    rooms = [path.parent.name for path in (ROOT / "src" / "treeclaim").glob("*/__init__.py")]
    assert [room for room in sorted(rooms) if f"`src/treeclaim/{room}/`" not in PAGE] == []
