# SPDX-License-Identifier: Apache-2.0
"""The glossary of docs/architecture.md has every public class of its packages whose name is one word."""

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
    """The public classes at the top level of a package's modules, with their docstrings."""
    return {
        node.name: ast.get_docstring(node)
        for path in (ROOT / "src" / "treeclaim" / package).rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }


def is_one_word(name):
    """Whether a name has a single word, which tells less of what it means than two."""
    return re.fullmatch("[A-Z][a-z0-9]+", name) is not None


@pytest.mark.parametrize("package", TABLES)
def test_every_public_class_named_by_one_word_is_in_the_glossary(package):
    assert set(filter(is_one_word, public_classes(package))) <= classes_named(TABLES[package])


@pytest.mark.parametrize("package", TABLES)
def test_every_word_of_the_glossary_is_a_public_class(package):
    assert classes_named(TABLES[package]) <= set(public_classes(package))


@pytest.mark.parametrize("package", TABLES)
def test_every_public_class_says_what_it_is(package):
    assert [name for name, text in public_classes(package).items() if not text] == []


def test_the_store_is_in_the_glossary():
    assert "store" in TABLES
