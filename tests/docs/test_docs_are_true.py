# SPDX-License-Identifier: Apache-2.0
"""Names in the pages exist, and the pages name what exists."""

import re
import subprocess
import sys
from dataclasses import asdict

import pytest

from tests.paths import ROOT
from treeclaim.config.effective import all_options
from treeclaim.store.database.timeouts import Timeouts
from treeclaim.store.schema.tables import own_tables

OF_LIBRARIES = {"keystone_authtoken", "oslo_middleware", "oslo_policy", "oslo_concurrency"}
"""Groups with options that libraries register on first use."""

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]


def test_takeover_page_lists_every_own_table():
    page = (ROOT / "docs" / "deploy" / "take-over.md").read_text()
    (statement,) = re.findall(r"`DROP TABLE ([^`]*)`", page)
    tables = {*own_tables.tables}
    assert set(re.findall(r"\w+", statement)) == tables


def test_every_make_target_that_a_page_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for page in PAGES
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE)
    }
    assert named <= targets


def test_every_option_that_a_page_names_exists():
    existing = {
        (group or "DEFAULT", option.dest)
        for group, options in all_options([])
        for option in options
    }
    named = {
        match
        for page in (ROOT / "docs").glob("**/*.md")
        for match in re.findall(r"\[(\w+)\]/(\w+)", page.read_text())
        if match[0] not in OF_LIBRARIES
    }
    assert named - existing == set()


def test_every_file_link_has_a_target():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            # The site's own pages are made of other files when it is built.
            made = target.removeprefix("site/") if page.parent == ROOT / "docs" else target
            is_made = made != target and ((ROOT / made).exists() or made == "api.md")
            assert is_made or (page.parent / target).exists(), (page, target)


def test_documented_database_timeouts_are_the_defaults():
    page = (ROOT / "docs" / "operate.md").read_text()
    rows = re.findall(r"\| ([0-9.]+) s? *\| `database_(\w+)_timeout`", page)
    assert {name: float(seconds) for seconds, name in rows} == asdict(Timeouts())


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "docs", tmp_path]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert "Placement" in (tmp_path / "site" / "api.html").read_text()
