# SPDX-License-Identifier: Apache-2.0
"""Every cache in the code is on the page about caches."""

import ast
import re
from collections import Counter

from tests.paths import ROOT

DECORATORS = {"cache", "lru_cache", "remembering_short", "cached"}
"""What makes a cache of a function. `cached_property` belongs to one object."""

CLASSES = {"ByteCache", "LRUCache", "TTLCache", "lru_cache", "remembering_short"}
"""What is a cache when it is called."""

KINDS = {"SummaryTexts", "ListingTexts", "KeptAnswers", "LongQuestions", "CompiledStatement", "Versioned", "KeptSums"}
"""Classes that are caches of their own kind."""

GENERIC = {"cache", "candidates", "counts", "pairs"}
"""Attributes of the Forest, listed as `Forest.cache` and so on."""


def name_of(node):
    """The last name of an expression such as `functools.lru_cache(8)`."""
    while isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


def caches_of(tree):
    """The names of all caches that a module makes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            if DECORATORS & {name_of(decorator) for decorator in node.decorator_list}:
                yield node.name
        elif isinstance(node, ast.ClassDef) and node.name in KINDS:
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if name_of(node.value) in CLASSES:
                yield from (name_of(target) for target in targets)


def caches():
    """How many caches have a name."""
    found = Counter()
    for path in sorted((ROOT / "src").rglob("*.py")):
        if path.name == "remembering.py":
            continue
        names = list(caches_of(ast.parse(path.read_text())))
        found.update(f"Forest.{name}" if name in GENERIC else name for name in names)
    return found


def listed():
    """How many rows of the page are about a cache of a name."""
    page = (ROOT / "docs" / "caches.md").read_text()
    return Counter(re.findall(r"^\| `([\w.]+)`", page, re.MULTILINE))


def test_every_cache_is_on_the_page():
    assert caches() - listed() == Counter()


def test_no_cache_on_the_page_has_gone():
    names = set(re.findall(r"\w+", "".join(map(str, sources()))))
    assert {name for name in listed() if name.split(".")[-1] not in names} == set()


def sources():
    """The text of every module."""
    return [path.read_text() for path in (ROOT / "src").rglob("*.py")]


def test_every_kind_of_cache_that_is_looked_for_exists():
    assert set(caches()) >= KINDS


def test_caches_that_nobody_listed_are_found():
    made = ast.parse(
        "@lru_cache(8)\ndef read(): ...\n_found = ByteCache(1)\nother = remembering_short(1, 2)(f)"
    )
    assert sorted(caches_of(made)) == ["_found", "other", "read"]
