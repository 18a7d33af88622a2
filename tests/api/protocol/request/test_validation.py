# SPDX-License-Identifier: Apache-2.0
"""Bodies and queries are checked within bounds, and refusals name what is wrong."""

import json
import time
import tracemalloc
from contextlib import suppress
from itertools import pairwise

import pytest

from tests.api.stretches import LONGEST_STRETCH
from tests.machine import slowness
from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.request import validation
from treeclaim.api.protocol.request.validation import (
    Checker,
    length_of_pairs,
    parsed_json,
    query_pairs,
    require_query,
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


def test_brackets_in_texts_or_siblings_do_not_count_as_nesting():
    for value in ("[" * 100, '"' * 3 + "[" * 100, "\\" + "{" * 100, [[]] * 100):
        assert parsed_json(json.dumps(value).encode()) == value
    within = [["[" * 100] * 3, '\\"[']
    assert parsed_json(json.dumps(within).encode()) == within


LONGEST_BODY = 16 * 1024 * 1024
DEEP = b"[[]" * (DEEPEST + 1)
"""So many brackets that it might be too deep."""

PADDING = {
    "quotes": (DEEP, b'"ab', b""),
    "escapes": (DEEP + b'"', b"\\n", b'"' + b"]" * (DEEPEST + 1)),
    "escaped quotes": (DEEP + b'"', b'\\"', b'"' + b"]" * (DEEPEST + 1)),
    "whitespace": (b"[", b" \t\r\n", b"1]"),
    "colons": (b'["', b": ", b'"]'),
    "digits behind a colon": (b'[":', b"1", b'"]'),
}


def full_of(kind, length):
    """A body of so many bytes that is full of something."""
    begin, padding, end = PADDING[kind]
    return begin + padding * (length // len(padding)) + end


def read(body, look=lambda: None):
    """Parse a body, which may be none."""
    with suppress(ApiError):
        parsed_json(body, look=look)


@pytest.mark.parametrize("kind", PADDING)
def test_parsing_a_long_body_checks_the_deadline(kind):
    looks = []
    body = full_of(kind, LONGEST_BODY)
    looks.append(time.thread_time())
    read(body, look=lambda: looks.append(time.thread_time()))
    looks.append(time.thread_time())
    longest = max(after - before for before, after in pairwise(looks))
    assert longest <= LONGEST_STRETCH * slowness()


@pytest.mark.parametrize("kind", PADDING)
def test_parsing_memory_is_bounded_for_any_body(kind):
    body = full_of(kind, LONGEST_BODY // 16)
    tracemalloc.start()
    try:
        read(body)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The parser takes twelve times the body, of which it does not touch most.
    assert most <= 14 * len(body)


def test_invalid_json_is_refused():
    for body in (b"", b"{", b'{"a":}', b"\xff", b"[1,]"):
        with pytest.raises(ApiError) as found:
            parsed_json(body)
        assert found.value.status == 400
        assert found.value.detail.startswith("Malformed JSON")


def test_query_length_counts_names_and_values():
    assert length_of_pairs([]) == 0
    assert length_of_pairs([("resources", "VCPU:1"), ("limit", "")]) == 20


def test_the_last_value_of_a_parameter_counts():
    pairs = query_pairs("a=1&b=&a=%32")
    assert pairs == [("a", "1"), ("b", ""), ("a", "2")]
    assert require_query(Checker({"type": "object"}), pairs) == {"a": "2", "b": ""}
    with pytest.raises(ApiError) as found:
        query_pairs("a=%ff")
    assert "Invalid query string parameters" in found.value.detail
