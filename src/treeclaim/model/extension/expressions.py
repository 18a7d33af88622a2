# SPDX-License-Identifier: Apache-2.0
"""Expressions about the attributes of a provider, and their parser (contract page 102, section 1).

The parser has a method for each rule of the grammar. It reads from left to right, so an error has the column of the
first unexpected token.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NoReturn

from treeclaim.model.provider import AttributeValue, is_attribute_name

MOST_CHARACTERS = 1_024
"""Most characters of an expression."""

MOST_VALUES = 64
"""Most values of an expression."""

DEEPEST_BRACKETS = 16
"""Most levels of brackets of an expression."""

MOST_VERSION_DIGITS = 9
"""Most digits of each number of a version."""


class Operator(StrEnum):
    """Comparison operators."""

    EQUAL = "=="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class VersionValue:
    """A version, for comparison with text attributes that have the form of a version.

    Attributes:
        numbers: Without trailing zeros.
    """

    numbers: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> "VersionValue":
        """Parse a text of the form N{.N}."""
        numbers = [int(number) for number in text.split(".")]
        while numbers and not numbers[-1]:
            numbers.pop()
        return cls(tuple(numbers))


ExpressionValue = AttributeValue | VersionValue
"""A value in an expression."""


@dataclass(frozen=True, slots=True)
class Disjunction:
    """True if any of its parts is true."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Conjunction:
    """True if all its parts are true."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """True if its part is false."""

    part: "Node"


@dataclass(frozen=True, slots=True)
class Existence:
    """True if the provider has the attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """True if the comparison of the attribute with any value of the same type is true."""

    name: str
    operator: Operator
    values: tuple[ExpressionValue, ...]


Node = Disjunction | Conjunction | Negation | Existence | Comparison


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. Only texts are compared, since 1 equals True in Python.

    Attributes:
        node: The root of the syntax tree.
        names: The attributes of the expression, in order of first use.
    """

    text: str
    node: Node = field(compare=False, repr=False)
    names: tuple[str, ...] = field(compare=False, repr=False)


class ExpressionError(ValueError):
    """A text is not an expression.

    Attributes:
        column: The first unexpected character, counted from 1; one past the end of an incomplete text.
    """

    def __init__(self, column: int) -> None:
        """Create the error of a column."""
        super().__init__(f"column {column}")
        self.column = column


_SPACES = re.compile(" *")
_WORD = re.compile(r"\w*")
"""Includes non-ASCII letters and digits, which must not touch a word either."""

_INTEGER = re.compile("[0-9]+")
_VERSION = re.compile(rf"v[0-9]{{1,{MOST_VERSION_DIGITS}}}")
_FURTHER_NUMBER = re.compile(rf"\.[0-9]{{1,{MOST_VERSION_DIGITS}}}(?!\w)")
_TEXT = re.compile("'(?:[^']|'')*'(?!')")
_SIGN = re.compile("==|!=|<=|>=|<|>")
_TRUTHS = {"true": True, "false": False}
_NO_ORDER = (Operator.EQUAL, Operator.UNEQUAL)


def read_expression(text: str) -> Expression:
    """Parse an expression.

    Raises:
        ExpressionError: if the text is not an expression, or exceeds a bound.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(MOST_CHARACTERS + 1)
    reader = _Reader(text)
    node = reader.read_all()
    return Expression(text, node, tuple(reader.names))


class _Reader:
    """A recursive-descent parser of one text."""

    def __init__(self, text: str) -> None:
        self.names: dict[str, None] = {}
        self._text = text
        self._at = 0
        self._values = 0
        self._depth = 0

    def read_all(self) -> Node:
        node = self._expression()
        if self._next_word() or self._at < len(self._text):
            self._refuse()
        return node

    # Rules of the grammar.

    def _expression(self) -> Node:
        parts = [self._conjunction()]
        while self._takes_word("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts))

    def _conjunction(self) -> Node:
        parts = [self._negation()]
        while self._takes_word("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))

    def _negation(self) -> Node:
        return Negation(self._term()) if self._takes_word("not") else self._term()

    def _term(self) -> Node:
        if self._opens():
            node = self._expression()
            self._closes()
            return node
        if self._takes_word("exists"):
            return Existence(self._name())
        name = self._name()
        if self._takes_word("in"):
            return Comparison(name, Operator.EQUAL, self._list())
        sign = _SIGN.match(self._text, self._at)
        if sign is None:
            return Comparison(name, Operator.EQUAL, (True,))
        self._at = sign.end()
        operator = Operator(sign[0])
        return Comparison(name, operator, (self._value(is_ordered=operator not in _NO_ORDER),))

    def _list(self) -> tuple[ExpressionValue, ...]:
        if not self._opens():
            self._refuse()
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        self._closes()
        return tuple(values)

    def _name(self) -> str:
        name = self._next_word()
        if not is_attribute_name(name):
            self._refuse()
        self._at += len(name)
        self.names[name] = None
        return name

    def _value(self, *, is_ordered: bool = False) -> ExpressionValue:
        """Read a value; an ordered value is a number or a version."""
        word = self._next_word()
        self._values += 1
        if self._values > MOST_VALUES:
            self._refuse()
        if self._text.startswith("-", self._at):
            self._at += 1
            return -self._integer(self._next_word())
        if _INTEGER.match(word):
            return self._integer(word)
        if _VERSION.fullmatch(word):
            return self._version(word)
        if is_ordered:
            self._refuse()
        if word in _TRUTHS:
            self._at += len(word)
            return _TRUTHS[word]
        return self._quote()

    def _integer(self, word: str) -> int:
        if not _INTEGER.fullmatch(word):
            self._refuse()
        self._at += len(word)
        return int(word)

    def _version(self, first_word: str) -> VersionValue:
        begin = self._at
        self._at += len(first_word)
        while number := _FURTHER_NUMBER.match(self._text, self._at):
            self._at = number.end()
        return VersionValue.of(self._text[begin + 1 : self._at])

    def _quote(self) -> str:
        if not self._text.startswith("'", self._at):
            self._refuse()
        text_match = _TEXT.match(self._text, self._at)
        if text_match is None:
            raise ExpressionError(len(self._text) + 1)
        self._at = text_match.end()
        return text_match[0][1:-1].replace("''", "'")

    # Tokens.

    def _next_word(self) -> str:
        """Skip spaces; return the word or number that follows, without consuming it, or ""."""
        spaces = _SPACES.match(self._text, self._at)
        self._at = spaces.end() if spaces else self._at
        word = _WORD.match(self._text, self._at)
        return word[0] if word else ""

    def _takes_word(self, word: str) -> bool:
        is_there = self._next_word() == word
        self._at += len(word) * is_there
        return is_there

    def _takes(self, sign: str) -> bool:
        self._next_word()
        is_there = self._text.startswith(sign, self._at)
        self._at += len(sign) * is_there
        return is_there

    def _opens(self) -> bool:
        if not self._takes("("):
            return False
        self._depth += 1
        if self._depth > DEEPEST_BRACKETS:
            self._at -= 1
            self._refuse()
        return True

    def _closes(self) -> None:
        if not self._takes(")"):
            self._refuse()
        self._depth -= 1

    def _refuse(self) -> NoReturn:
        raise ExpressionError(self._at + 1)
