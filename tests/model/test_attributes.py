# SPDX-License-Identifier: Apache-2.0
"""Names and values of attributes."""

import pytest

from treeclaim.model.attributes import (
    GREATEST_NUMBER,
    RESERVED_WORDS,
    AttributeKind,
    AttributeValue,
    is_attribute_name,
    is_attribute_value,
    kind_of,
    same_attributes,
    same_value,
)


@pytest.mark.parametrize("name", ["a", "mem_gib", "v100", "a" * 63, "android", "x_1_"])
def test_valid_attribute_names_are_accepted(name):
    assert is_attribute_name(name)


@pytest.mark.parametrize(
    "name", ["", "A", "1a", "_a", "a-b", "a" * 64, "a\n", "ä", *sorted(RESERVED_WORDS)]
)
def test_invalid_attribute_names_are_rejected(name):
    assert not is_attribute_name(name)


@pytest.mark.parametrize(
    "value", [True, False, 0, GREATEST_NUMBER, -GREATEST_NUMBER, "x", " ", "x" * 255, "\xa0ä€"]
)
def test_valid_attribute_values_are_accepted(value):
    assert is_attribute_value(value)


@pytest.mark.parametrize(
    "value",
    [
        *(GREATEST_NUMBER + 1, -GREATEST_NUMBER - 1, 1.0, None, [1]),
        *("", "x" * 256, "x\n", "\x00", "\x7f", "\x9f"),
    ],
)
def test_invalid_attribute_values_are_rejected(value):
    assert not is_attribute_value(value)


def test_values_of_different_types_are_never_the_same():
    values: list[AttributeValue] = [1, True, "1", "True", 0, False, ""]
    same = [(value, other) for value in values for other in values if same_value(value, other)]
    assert same == [(value, value) for value in values]
    assert [kind_of(value) for value in values[:3]] == [
        AttributeKind.INTEGER,
        AttributeKind.BOOL,
        AttributeKind.TEXT,
    ]


def test_attributes_are_equal_if_all_values_are():
    assert same_attributes({"a": 1, "b": "x"}, {"b": "x", "a": 1})
    assert not same_attributes({"a": 1}, {"a": True})
    assert not same_attributes({"a": 1}, {"a": 1, "b": 1})
    assert not same_attributes({"a": 1}, {})
