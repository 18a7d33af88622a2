# SPDX-License-Identifier: Apache-2.0
"""Every defect in the track record is guarded by a test that exists, and by a command that runs it."""

from tests.paths import ROOT
import ast
import re
import shlex
import subprocess
import sys
from difflib import SequenceMatcher
from functools import cache
from itertools import combinations

import pytest

from tools import generated

PAGE = ROOT / "docs" / "track-record.md"
_EVERYTHING = "--databases=all"
_SLOW = "pytest.mark.slow"


def rows():
    """The cells of each row of the table."""
    table = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def in_code(cell):
    """The text of a cell that is code as a whole."""
    found = re.fullmatch(r"`([^`]+)`", cell)
    assert found, cell
    return found[1]


@cache
def runs_on_all_databases(path):
    """The tests of a file by name, each with whether it runs on all databases only."""
    module = ast.parse((ROOT / path).read_text())
    all_slow = any(
        isinstance(node, ast.Assign) and _SLOW in ast.unparse(node) and "pytestmark" in ast.unparse(node)
        for node in module.body
    )
    return {
        node.name: all_slow or any(_SLOW in ast.unparse(mark) for mark in node.decorator_list)
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_row_is_whole():
    assert len(rows()) > 30
    for row in rows():
        assert len(row) == 4, row
        assert all(row), row


def test_classes_are_counted():
    assert PAGE.read_text() == generated.track_record()


def test_each_class_has_one_name():
    """A name that is another one with a word less, or more, would be counted apart."""
    names = sorted(generated.classes_of(PAGE.read_text()))
    twins = [
        (one, other)
        for one, other in combinations(names, 2)
        if one in other or SequenceMatcher(None, one, other).ratio() > 0.85
    ]
    assert twins == []
    assert not any(";" in name for name in names)


def test_every_test_in_the_track_record_exists_and_its_command_runs_it():
    for defect, _, guard, command in rows():
        path, _, name = in_code(guard).partition("::")
        assert name in runs_on_all_databases(path), defect
        options = [_EVERYTHING] if runs_on_all_databases(path)[name] else []
        assert shlex.split(in_code(command)) == ["pytest", *options, in_code(guard)], defect


@pytest.mark.slow
def test_every_command_in_the_track_record_finds_its_test():
    guards = {in_code(guard) for _, _, guard, _ in rows()}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", _EVERYTHING, *guards]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
