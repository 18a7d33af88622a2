# SPDX-License-Identifier: Apache-2.0
"""The glossary of docs/architecture.md has every public class of the packages in it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "architecture.md").read_text().partition("\n## Glossary\n")[2]
TABLES = dict(re.findall(r"^### (\w+)$(.*?)(?=^##|\Z)", GLOSSARY, re.MULTILINE | re.DOTALL))
"""The text below each heading of the glossary; a heading is the name of a package."""


def classes_named(table):
    """The words in the first column of a table."""
    first_column = re.findall(r"^\|([^|]*)\|", table, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", " ".join(first_column)))


def public_classes(package):
    """The public classes at the top level of a package's modules."""
    return {
        node.name
        for path in (ROOT / "src" / "treeclaim" / package).rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }


@pytest.mark.parametrize("package", TABLES)
def test_every_public_class_is_in_the_glossary_and_nothing_else_is(package):
    assert classes_named(TABLES[package]) == public_classes(package)


def test_the_store_is_in_the_glossary():
    assert "store" in TABLES
