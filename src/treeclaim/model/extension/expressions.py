# SPDX-License-Identifier: Apache-2.0
"""Expressions about the attributes of a provider (contract page 102, section 1)."""

from dataclasses import dataclass, field
from enum import StrEnum

from treeclaim.model.attributes import AttributeValue

MOST_CHARACTERS = 1_024
"""Characters that an expression may have."""

MOST_VALUES = 64
"""Values that an expression may have."""

DEEPEST_BRACKETS = 16
"""Levels of brackets that an expression may have."""

MOST_VERSION_DIGITS = 9
"""Digits that each number of a version may have."""


class Operator(StrEnum):
    """Comparisons of an attribute with a value."""

    EQUAL = "=="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class VersionValue:
    """A version, which is compared with texts of its form.

    Attributes:
        numbers: Without zeros at the end: missing numbers are zeros.
    """

    numbers: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> "VersionValue":
        """Return the version that a text of the form N{.N} tells."""
        numbers = [int(number) for number in text.split(".")]
        while numbers and not numbers[-1]:
            numbers.pop()
        return cls(tuple(numbers))


Value = AttributeValue | VersionValue
"""A value in an expression."""


@dataclass(frozen=True, slots=True)
class Either:
    """Holds where any of its parts does."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Every:
    """Holds where all of its parts do."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """Holds where its part does not."""

    part: "Node"


@dataclass(frozen=True, slots=True)
class Exists:
    """Holds where a provider has the attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Holds where the attribute compares so with any of the values, if it is of the type of that."""

    name: str
    operator: Operator
    values: tuple[Value, ...]


Node = Either | Every | Negation | Exists | Comparison


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that was read. Those with the same text are equal.

    Attributes:
        text: As it was written. Not the values tell expressions apart: for Python, 1 is `True`.
        node: What it says.
        names: The names of the attributes in it, each once, in their order there.
    """

    text: str
    node: Node = field(compare=False, repr=False)
    names: tuple[str, ...] = field(compare=False, repr=False)


class ExpressionError(ValueError):
    """A text is not an expression.

    Attributes:
        column: Where what cannot stand there begins, counted from 1; one behind the end if
            something is missing.
    """

    def __init__(self, column: int) -> None:
        """Tell where."""
        super().__init__(f"column {column}")
        self.column = column
