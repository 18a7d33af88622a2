# SPDX-License-Identifier: Apache-2.0
"""Variables, parameters, functions and classes have no bare pronoun or participle as their name."""

import ast

import pytest

from tests.paths import ROOT

WORDS = {
    "asked", "found", "given", "it", "more", "one", "own", "rest",
    "said", "same", "some", "there", "told", "what", "who",
}  # fmt: skip
"""Words that name nothing. Fields of data classes may have them, because the API names some of its members so."""


def names_in(node):
    """Return the names that a node of a syntax tree defines."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            return [name]
        case (
            ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name)
        ):
            return [name]
    return []


def defined_names(tree):
    """Yield all names that a module defines, with their lines, except fields of classes."""
    fields = {
        statement.target
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if node not in fields:
            yield from ((name, getattr(node, "lineno", 0)) for name in names_in(node))


@pytest.mark.parametrize("folder", ["src", "bench", "tools", "tests"])
def test_no_name_is_a_bare_pronoun_or_participle(folder):
    violations = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, line in defined_names(ast.parse(path.read_text()))
        if name.strip("_").lower() in WORDS
    ]
    assert not violations
