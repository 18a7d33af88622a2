# SPDX-License-Identifier: Apache-2.0
"""Attributes of providers: names with a value each (contract page 102, section 1)."""

import re
from collections.abc import Mapping
from enum import IntEnum

AttributeValue = bool | int | str

Attributes = Mapping[str, AttributeValue]
"""The attributes of a provider, by name."""

NO_ATTRIBUTES: Attributes = {}
"""The attributes of every provider that has none; shared, so never written to."""

MOST_ATTRIBUTES = 64
"""Attributes that a provider may have."""

GREATEST_NUMBER = 2**53 - 1
"""The greatest absolute value of an integer."""

LONGEST_TEXT = 255
"""The most characters a text may have; it has at least one."""

RESERVED_WORDS = frozenset({"and", "or", "not", "exists", "in", "true", "false"})
"""The words of the expression language, which cannot be names."""

NAME_PATTERN = rf"^(?!(?:{'|'.join(sorted(RESERVED_WORDS))})$)[a-z][a-z0-9_]{{0,62}}$"
"""The pattern of names, as JSON Schema writes it."""

TEXT_PATTERN = rf"^[^\x00-\x1f\x7f-\x9f]{{1,{LONGEST_TEXT}}}$"
"""The pattern of texts: no control characters."""

_NAME = re.compile(NAME_PATTERN.replace("$", r"\Z"))
_TEXT = re.compile(TEXT_PATTERN.replace("$", r"\Z"))
_LONE = re.compile("[\\ud800-\\udfff]")


class AttributeKind(IntEnum):
    """The type of a value; values of different types are never equal."""

    BOOL = 1
    INTEGER = 2
    TEXT = 3


def kind_of(value: AttributeValue) -> AttributeKind:
    """Return the type of a value; for Python, a bool is an integer too."""
    if isinstance(value, bool):
        return AttributeKind.BOOL
    return AttributeKind.INTEGER if isinstance(value, int) else AttributeKind.TEXT


def is_attribute_name(name: str) -> bool:
    """Return whether an attribute may have this name."""
    return _NAME.match(name) is not None


def is_attribute_value(value: object) -> bool:
    """Return whether an attribute may have this value."""
    if isinstance(value, int):
        return -GREATEST_NUMBER <= value <= GREATEST_NUMBER
    # A single surrogate is not a character: no encoding has it.
    return isinstance(value, str) and _TEXT.match(value) is not None and not _LONE.search(value)


def same_value(first: AttributeValue, other: AttributeValue) -> bool:
    """Return whether two values are equal and of the same type: 1 and True are not."""
    return first == other and kind_of(first) is kind_of(other)


def same_attributes(first: Attributes, other: Attributes) -> bool:
    """Return whether both have the same names with the same values."""
    return first == other and all(same_value(first[name], other[name]) for name in first)
