# SPDX-License-Identifier: Apache-2.0
"""A name says what it stands for; a pronoun or a preposition does not."""

import ast

import pytest

from tests.repository.sources import trees

SAYING_NOTHING = {"one", "it", "own", "there", "of"}


def bound_names(tree):
    """Names that a module gives to values and functions; a constructor may be `Class.of(...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            is_constructor = "classmethod" in map(ast.unparse, node.decorator_list)
            if not (is_constructor and node.name == "of"):
                yield node.name, node.lineno
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, node.lineno


def test_no_name_is_a_pronoun_or_a_preposition():
    found = [
        f"{place}:{line} {name}"
        for place, tree in trees().items()
        for name, line in bound_names(tree)
        if name in SAYING_NOTHING
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "for one in numbers: pass",
        "it = 1",
        "own: int",
        "def of(self): pass",
        "def total(there): pass",
        "import a as it",
        "[one for one in numbers]",
    ],
)
def test_such_a_name_is_found_wherever_it_is_bound(text):
    assert {name for name, _ in bound_names(ast.parse(text))} & SAYING_NOTHING


def test_a_constructor_may_be_called_of():
    text = "class Offer:\n    @classmethod\n    def of(cls, text): pass"
    assert not {name for name, _ in bound_names(ast.parse(text))} & SAYING_NOTHING
