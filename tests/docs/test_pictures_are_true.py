# SPDX-License-Identifier: Apache-2.0
"""The pictures of the documentation show what the service answers today."""

from tests.paths import ROOT
import subprocess
import sys

import pytest

PICTURES = ROOT / "docs" / "pictures"


@pytest.mark.slow
def test_committed_pictures_match_the_example_topology(tmp_path):
    subprocess.run([sys.executable, "-m", "tools.pictures", tmp_path], check=True, cwd=ROOT)
    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    assert drawn == {path.name: path.read_text() for path in PICTURES.glob("*.svg")}


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "docs", tmp_path]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert "Placement" in (tmp_path / "site" / "api.html").read_text()
