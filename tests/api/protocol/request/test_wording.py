# SPDX-License-Identifier: Apache-2.0
"""Patterns of schemas match whole texts, and UUIDs have no other characters than hexadecimal digits."""

import re
import unicodedata

import pytest

from treeclaim.api.protocol.operations import VersionedSchema
from treeclaim.api.protocol.request.validation import Checker
from treeclaim.api.routes import OPERATIONS
from treeclaim.model.microversions import MAXIMUM
from treeclaim.model.names import normalised_uuid
from treeclaim.model.provider import TEXT_PATTERN

UUID = "10000000-0000-4000-8000-000000000001"


CHECKED = {
    f"{operation.method} {operation.path} {kind}": versioned.at(MAXIMUM).schema
    for operation in OPERATIONS
    for kind, versioned in (("body", operation.body), ("query", operation.query))
    if isinstance(versioned, VersionedSchema)
}


@pytest.mark.parametrize("text", ["{}\n", "\n{}", "{} ", " {}", "{}\r", "{}\u2028", "{}\0"])
@pytest.mark.parametrize("schema", CHECKED.values(), ids=CHECKED.keys())
def test_no_pattern_accepts_a_line_break(schema, text):
    """By the words of ECMA-262: `$` is the end of the text, nothing before it."""
    for pattern, fitting in _patterns(schema):
        if pattern == TEXT_PATTERN and not any(unicodedata.category(c) == "Cc" for c in text):
            # Texts may have all but control characters.
            continue
        assert re.search(pattern, fitting), "the example is wrong"
        for checker in (Checker({"pattern": pattern}), Checker(_names_like(pattern))):
            for value, valid in ((fitting, True), (text.format(fitting), False)):
                document = value if "pattern" in checker.schema else {value: 1}
                problem = checker.problem(document, length=1)
                assert (problem is None) is valid, (pattern, value)
                assert valid or "Failed validating '" in problem


EXAMPLES = ["1", "VCPU", "CUSTOM_A", UUID, "all"]
EXAMPLES += [f"{name}_A" for name in ("resources", "required", "member_of", "in_tree")]
EXAMPLES += ["in_subtree_A", "inventories", "over_capacity"]


def _names_like(pattern):
    return {"patternProperties": {pattern: {}}, "additionalProperties": False}


def _patterns(schema):
    """All patterns of a schema that are anchored at both ends, each with a text that fits."""
    if isinstance(schema, list):
        return [pattern for expression in schema for pattern in _patterns(expression)]
    if not isinstance(schema, dict):
        return []
    patterns = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    patterns += schema.get("patternProperties", {})
    patterns = [
        expression
        for expression in patterns
        if expression.startswith("^") and expression.endswith("$") and "|^" not in expression
    ]
    examples = [
        (expression, next(text for text in EXAMPLES if re.search(expression, text)))
        for expression in patterns
    ]
    return examples + [
        pattern for expression in schema.values() for pattern in _patterns(expression)
    ]


@pytest.mark.parametrize("at", range(0, 36, 5))
@pytest.mark.parametrize("character", ["\n", " ", "_", "\N{ARABIC-INDIC DIGIT ONE}", "g", "\0"])
def test_a_uuid_has_hexadecimal_digits_only(at, character):
    """Python's own reader lets blanks, underscores and digits of other scripts through."""
    for text in (UUID, UUID.replace("-", "")):
        changed = text[:at] + character + text[at + 1 :]
        if changed != text and len(changed) == len(text):
            assert normalised_uuid(changed) is None
    assert normalised_uuid(f"urn:uuid:{UUID.upper()}") == UUID
    assert normalised_uuid(f"{{{UUID}}}") == UUID
