# SPDX-License-Identifier: Apache-2.0
"""Expressions about the attributes of a provider, and their parser (contract page 102, section 1).

The parser has a method for each rule of the grammar. It reads text from left to right, so that an error names the
first thing that cannot be where it is.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NoReturn

from treeclaim.model.provider import AttributeValue, is_attribute_name

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
        """Return the version of a text of the form N{.N}."""
        numbers = [int(number) for number in text.split(".")]
        while numbers and not numbers[-1]:
            numbers.pop()
        return cls(tuple(numbers))


Value = AttributeValue | VersionValue
"""A value in an expression."""


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Holds where any of its parts does."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Holds where all of its parts do."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """Holds where its part does not."""

    part: "Node"


@dataclass(frozen=True, slots=True)
class Existence:
    """Holds where a provider has the attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Holds where the attribute compares so with any of the values, if it is of the type of that."""

    name: str
    operator: Operator
    values: tuple[Value, ...]


Node = Disjunction | Conjunction | Negation | Existence | Comparison


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. Expressions with equal texts are equal.

    Attributes:
        text: The source. Values do not distinguish expressions: in Python, 1 equals `True`.
        node: The root of the syntax tree.
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
        """Set the position of the error."""
        super().__init__(f"column {column}")
        self.column = column


_SPACES = re.compile(" *")
_WORD = re.compile(r"\w*")
"""Letters and digits of any kind: two such words need a space between them."""

_INTEGER = re.compile("[0-9]+")
_VERSION = re.compile(rf"v[0-9]{{1,{MOST_VERSION_DIGITS}}}")
_FURTHER_NUMBER = re.compile(rf"\.[0-9]{{1,{MOST_VERSION_DIGITS}}}(?!\w)")
_TEXT = re.compile("'(?:[^']|'')*'(?!')")
_SIGN = re.compile("==|!=|<=|>=|<|>")
_TRUTHS = {"true": True, "false": False}
_NO_ORDER = (Operator.EQUAL, Operator.UNEQUAL)


def read_expression(text: str) -> Expression:
    """Return the expression that a text is.

    Raises:
        ExpressionError: if it is none, or too large a one.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(MOST_CHARACTERS + 1)
    reader = _Reader(text)
    node = reader.whole()
    return Expression(text, node, tuple(reader.names))


class _Reader:
    """A text, and how far it is read."""

    def __init__(self, text: str) -> None:
        self.names: dict[str, None] = {}
        self._text = text
        self._at = 0
        self._values = 0
        self._depth = 0

    def whole(self) -> Node:
        """Read all of the text as one expression.

        Raises:
            ExpressionError: if it is none, or has too much in it.
        """
        node = self._expression()
        if self._next_word() or self._at < len(self._text):
            self._refuse()
        return node

    # -- the rules of the grammar ----------------------------------------------------------

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
        return Comparison(name, operator, (self._value(ordered=operator not in _NO_ORDER),))

    def _list(self) -> tuple[Value, ...]:
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

    def _value(self, *, ordered: bool = False) -> Value:
        """Read a value; an ordered one is a number or a version."""
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
        if ordered:
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

    def _version(self, first: str) -> VersionValue:
        begin = self._at
        self._at += len(first)
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

    # -- what stands next ------------------------------------------------------------------

    def _next_word(self) -> str:
        """Go on to what stands next, and return it if it is a word or a number, else ""."""
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
