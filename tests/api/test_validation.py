# SPDX-License-Identifier: Apache-2.0
"""The quick validator lets nothing pass that the one with the wording objects to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from treeclaim.api.protocol.microversions import MAXIMUM
from treeclaim.api.protocol.validation import Checker
from treeclaim.api.routes import OPERATIONS
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

checks_uuid = FormatChecker(formats=())


@checks_uuid.checks("uuid")
def _is_uuid(value):
    return not isinstance(value, str) or normalised_uuid(value) is not None


def _fitting(schema):
    """Values that a schema nearly admits: its own names, with usual and unusual values."""
    properties = schema.get("properties", {})
    inner = {name: _fitting(one) | PLAIN for name, one in properties.items()}
    if schema.get("type") == "array":
        return st.lists(_fitting(schema.get("items", {})), max_size=3)
    if "patternProperties" in schema:
        some = st.one_of([_fitting(one) for one in schema["patternProperties"].values()])
        return st.dictionaries(TEXTS | NAMES, some | PLAIN, max_size=3)
    if properties:
        required = {name: inner[name] for name in schema.get("required", ()) if name in inner}
        return st.fixed_dictionaries(
            required, optional={name: one for name, one in inner.items() if name not in required}
        )
    return PLAIN


CHECKED = {
    f"{one.method} {one.path} {kind}": versioned.at(MAXIMUM).schema
    for one in OPERATIONS
    for kind, versioned in (("body", one.body), ("query", one.query))
    if versioned is not None
}


@pytest.mark.parametrize("schema", CHECKED.values(), ids=CHECKED.keys())
def test_both_validators_agree(schema):
    checker = Checker(schema)
    judge = Draft202012Validator(schema, format_checker=checks_uuid)

    @given(VALUES | _fitting(schema))
    def agree(value):
        assert (checker.problem(value) is None) == judge.is_valid(value)

    agree()
