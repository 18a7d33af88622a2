# SPDX-License-Identifier: Apache-2.0
"""Values that the validator refuses, and the library that words refusals."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from treeclaim.api.protocol.operations import VersionedSchema
from treeclaim.api.protocol.request.validation import Checker
from treeclaim.api.routes import OPERATIONS
from treeclaim.model.attributes import TEXT_PATTERN
from treeclaim.model.microversions import MAXIMUM
from treeclaim.model.names import normalised_uuid

UUID = "10000000-0000-4000-8000-000000000001"

TEXTS = st.sampled_from(
    [
        UUID,
        UUID.upper(),
        UUID + "\n",
        UUID.replace("-", ""),
        f"{{{UUID}}}",
        "x" * 36,
        "-" * 36,
        "CUSTOM_A",
        "CUSTOM_A\n",
        "CUSTOM_\N{LATIN CAPITAL LETTER A WITH DIAERESIS}",
        "VCPU",
        "vcpu",
        "",
        " ",
        "a",
        "a" * 256,
        "\N{ARABIC-INDIC DIGIT ONE}",
        "1",
        "1\n",
        "0",
        "in:A",
        "none",
        "isolate",
        "_1",
        "1",
        "\N{KELVIN SIGN}",
    ]
)
NAMES = st.sampled_from(
    [
        "allocations",
        "resources",
        "mappings",
        "project_id",
        "user_id",
        "consumer_generation",
        "consumer_type",
        "inventories",
        "aggregates",
        "traits",
        "resource_provider_generation",
        "name",
        "uuid",
        "parent_provider_uuid",
        "resource_class",
        "total",
        "reserved",
        "min_unit",
        "max_unit",
        "step_size",
        "allocation_ratio",
        "limit",
        "resource_provider",
        "in_tree",
        "_A",
    ]
)
NUMBERS = st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, 2**63, 2**64 - 1, 1.0, 1.5, 4e38, 3.5e38])
PLAIN = TEXTS | NUMBERS | st.booleans() | st.none()
VALUES = st.recursive(
    PLAIN,
    lambda some: st.lists(some, max_size=3) | st.dictionaries(NAMES | TEXTS, some, max_size=6),
    max_leaves=12,
)


def _fitting(schema):
    """Values that a schema nearly admits: its own names, with usual and unusual values."""
    properties = schema.get("properties", {})
    inner = {name: _fitting(one) | PLAIN for name, one in properties.items()}
    if schema.get("type") == "array":
        return st.lists(_fitting(schema.get("items", {})), max_size=3)
    if "patternProperties" in schema:
        some = st.one_of(
            [_fitting(patternproperty) for patternproperty in schema["patternProperties"].values()]
        )
        return st.dictionaries(TEXTS | NAMES, some | PLAIN, max_size=3)
    if properties:
        required = {name: inner[name] for name in schema.get("required", ()) if name in inner}
        return st.fixed_dictionaries(
            required, optional={name: one for name, one in inner.items() if name not in required}
        )
    return PLAIN


CHECKED = {
    f"{operation.method} {operation.path} {kind}": versioned.at(MAXIMUM).schema
    for operation in OPERATIONS
    for kind, versioned in (("body", operation.body), ("query", operation.query))
    if isinstance(versioned, VersionedSchema)
}


@pytest.mark.parametrize("schema", CHECKED.values(), ids=CHECKED.keys())
def test_values_that_the_library_refuses_are_refused(schema):
    checker = Checker(schema)
    words = Draft202012Validator(schema)

    @given(VALUES | _fitting(schema))
    def check(value):
        problem = checker.problem(value, length=1)
        assert problem != ""
        assert problem is not None or words.is_valid(value)

    check()


@pytest.mark.parametrize("text", ["{}\n", "\n{}", "{} ", " {}", "{}\r", "{}\u2028", "{}\0"])
@pytest.mark.parametrize("schema", CHECKED.values(), ids=CHECKED.keys())
def test_no_pattern_accepts_a_line_break(schema, text):
    """By the words of ECMA-262: `$` is the end of the text, nothing before it."""
    for pattern, fitting in _patterns(schema):
        if pattern == TEXT_PATTERN and not any(unicodedata.category(c) == "Cc" for c in text):
            # Of a text only control characters are refused.
            continue
        assert re.search(pattern, fitting), "the example is wrong"
        for checker in (Checker({"pattern": pattern}), Checker(_names_like(pattern))):
            for value, valid in ((fitting, True), (text.format(fitting), False)):
                asked = value if "pattern" in checker.schema else {value: 1}
                problem = checker.problem(asked, length=1)
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
        return [pattern for one in schema for pattern in _patterns(one)]
    if not isinstance(schema, dict):
        return []
    own = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    own += schema.get("patternProperties", {})
    own = [one for one in own if one.startswith("^") and one.endswith("$") and "|^" not in one]
    here = [(one, next(text for text in EXAMPLES if re.search(one, text))) for one in own]
    return here + [pattern for one in schema.values() for pattern in _patterns(one)]


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
