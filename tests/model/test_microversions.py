# SPDX-License-Identifier: Apache-2.0
"""A table has the features of each microversion; code and documents agree with it."""

import ast
from pathlib import Path

import pytest

from treeclaim.model.microversions import MAXIMUM, MINIMUM, ExtensionFeature, Feature

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "src" / "treeclaim" / "model" / "microversions.py"
SOURCES = sorted(set((ROOT / "src" / "treeclaim").rglob("*.py")) - {TABLE})


def test_each_microversion_has_one_feature():
    # Two names for one number would make the second an alias, which no iteration shows.
    assert len(Feature.__members__) == len(Feature)
    assert sorted(Feature) == list(range(MINIMUM.minor + 1, MAXIMUM.minor + 1))


def test_each_extension_version_has_one_feature():
    assert len(ExtensionFeature.__members__) == len(ExtensionFeature)
    assert sorted(ExtensionFeature) == list(range(len(ExtensionFeature)))


@pytest.mark.slow
def test_code_names_features_instead_of_microversion_numbers():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in SOURCES
        for line in _bare_versions(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "name the feature instead"


@pytest.mark.parametrize(
    "code",
    [
        "version.minor >= 12",
        "38 <= version.minor",
        "minor < 13",
        "version >= (1, 12)",
        "Operation(since=13)",
        "Version(1, 12)",
    ],
)
def test_bare_microversion_number_is_found(code):
    assert list(_bare_versions(ast.parse(code)))


def _bare_versions(tree):
    """Lines that compare a version with a literal, or declare one by a literal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(_is_version, sides)) and any(map(_is_number, sides)):
                yield node.lineno
        elif isinstance(node, ast.Call) and _name(node.func) in {"Version", "Operation"}:
            since = [
                keyword.value
                for keyword in node.keywords
                if keyword.arg in {"since", "minor", "extension"}
            ]
            if any(map(_is_number, [*node.args, *since])):
                yield node.lineno


def _is_version(node):
    return _name(node) in {"minor", "version"}


def _is_number(node):
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(_is_number, node.elts))
    return isinstance(node, ast.Constant) and type(node.value) is int


def _name(node):
    return getattr(node, "attr", getattr(node, "id", None))
