# SPDX-License-Identifier: Apache-2.0
"""Bodies and queries are checked within bounds, and refusals name what is wrong."""

import json

import pytest

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.request import validation
from treeclaim.api.protocol.request.validation import (
    Checker,
    parsed_json,
)

NUMBERS = Checker({"type": "object", "properties": {"a": {"type": "integer"}}})
DEEPEST = validation._DEEPEST


def test_error_for_a_long_value_is_brief_and_names_rule_and_location():
    value = {"b": ["x"] * 10, "a": "text"}
    detailed = NUMBERS.problem(value, length=10)
    brief = NUMBERS.problem(value, length=10**9)
    assert "Failed validating 'type'" in detailed
    assert "Failed validating 'type' on instance['a']" in brief
    assert NUMBERS.problem({"a": 1}, length=10**9) is None


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_body_nesting_is_limited(opening):
    closing = "]" if opening == "[" else "}"
    deep = opening * DEEPEST + "1" + closing * DEEPEST
    assert json.dumps(parsed_json(deep.encode()), separators=(",", ":")) == deep
    with pytest.raises(ApiError) as found:
        parsed_json((opening + deep + closing).encode())
    assert "nested too deeply" in found.value.detail


def test_invalid_json_is_refused():
    for body in (b"", b"{", b'{"a":}', b"\xff", b"[1,]"):
        with pytest.raises(ApiError) as found:
            parsed_json(body)
        assert found.value.status == 400
        assert found.value.detail.startswith("Malformed JSON")
