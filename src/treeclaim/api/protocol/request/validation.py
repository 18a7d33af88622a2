# SPDX-License-Identifier: Apache-2.0
"""Checks bodies and query strings by JSON schemas (contract page 00, sections 4 and 5)."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any
from urllib.parse import parse_qsl

import jsonschema_rs
import orjson
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match
from jsonschema_rs import ValidationErrorKind

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.request.schemas import Schema
from treeclaim.model.names import normalised_uuid, quote_value
from treeclaim.model.query import value_parsers

LONGEST_WORDED = 16_384
"""Characters of a body or query whose refusal is worded as clients know it. They match refusals of
single fields; finding the best words for anything takes up to half a second for this much, and
minutes for the longest body."""

_MOST_ERRORS = 100
"""Errors of a value, of which the most relevant is reported."""

_LONGEST_MESSAGE = 4_000
"""Characters: half of what an error shows, so that which rule was violated is in it too."""

_DEEPEST = 32
"""Levels of a body; claims have six. The quick validator compares the items of a list before it
judges them, and takes a minute for 16 MiB of nothing but brackets. The validator that words
refusals prints each level again inside the one around it: the square of the levels."""

_LARGEST_WHOLE = 2**63
"""The bound of integers that are read; the validator in Rust takes 64 bits."""

_MOST_PARAMETERS = 16_384
"""Parameters of a query. The longest address has room for 11,000 that mean something; a question of 512 request
groups with all that groups may have is a fifth of it."""

MOST_VALUES = 30_000
"""Values of a body (`values_in`), where its operation allows no more: thirty thousand names. What is done for each
takes some ten microseconds, and often some statements."""

MOST_VALUES_IN_BULK = 500_000
"""Values of a body that has many lists, or long queries, each with bounds of its own: all uuids that the longest
body by default has room for. They are parsed by one call, which takes 0.1 s at most."""

MOST_VALUES_OF_SOME = 100_000
"""Values of a body with claims, nine thousand of the usual ones, or with all that a part of a provider has; and of one
that places consumers: a thousand of them, sixteen rules with a thousand domains and a thousand others each,
and three times as many in its queries. The validator takes 0.03 s for them, and looks at no deadline; readers
have each provider of so many claims to count."""

_PATH_SHOWN = 10
"""Steps into a value that a brief refusal names."""


_FORMATS = FormatChecker(formats=())


@_FORMATS.checks("uuid")
def _is_uuid(value: object) -> bool:
    """Accept every spelling of a uuid (contract page 00, section 12)."""
    return not isinstance(value, str) or normalised_uuid(value) is not None


class Checker:
    """A schema made ready once, to check many values.

    A validator in Rust says a hundred times faster whether a value is valid, and it alone decides.
    Its refusals are worded by the library that clients know, if that takes little time, and if the library refuses
    the value too: by Python's patterns, `$` also matches before a newline at the end.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._wording = Draft202012Validator(schema, format_checker=_FORMATS)
        self._quick = jsonschema_rs.Draft202012Validator(
            schema, formats={"uuid": _is_uuid}, validate_formats=True
        )

    def problem(self, value: object, *, length: int) -> str | None:
        """Return what is wrong with a value, as the validator library words it; None if nothing.

        Clients match fragments of this wording. It is put on one line.

        Args:
            value: What was parsed.
            length: Characters of the text that it was parsed from.
        """
        try:
            if self._quick.is_valid(value):
                return None
            if length > LONGEST_WORDED:
                return self._briefly(value)
            return self._word_problem(value) or self._briefly(value)
        except (RecursionError, ValueError, orjson.JSONEncodeError):
            # Each of the libraries has its own limit, far beyond what any schema admits.
            return "the value is nested too deeply"

    def _word_problem(self, value: object) -> str | None:
        error = best_match(islice(self._wording.iter_errors(value), _MOST_ERRORS))
        if error is None:
            return None
        error.message = _without_middle(error.message)
        return str(error).replace("\n", " ")

    def _briefly(self, value: object) -> str:
        """Say what is wrong first, in words of a bounded length."""
        # Asked for all errors, it would make them all before it gives the first one.
        try:
            self._quick.validate(value)
        except jsonschema_rs.ValidationError as error:
            # Kept beyond this block it would keep this frame, and this frame the value.
            return _words(error)
        return "the value is not valid"


_TOO_MANY = (ValidationErrorKind.MaxItems, ValidationErrorKind.MaxProperties)


def _words(error: jsonschema_rs.ValidationError) -> str:
    path = "".join(f"[{step!r}]" for step in error.instance_path[:_PATH_SHOWN])
    message = error.message
    # The message begins with the value.
    if isinstance(error.kind, _TOO_MANY) and isinstance(error.instance, list | dict):
        message = f"{len(error.instance)} are more than {error.kind.limit}"
    return (
        f"{quote_value(message)} Failed validating {str(error.schema_path[-1])!r} on "
        f"instance{quote_value(path)}"
    )


def _without_middle(message: str) -> str:
    """Shorten a message whose beginning is a value, and whose end says what is wrong with it."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    half = _LONGEST_MESSAGE // 2
    return f"{message[:half]}\N{HORIZONTAL ELLIPSIS}{message[-half:]}"


def values_in(body: bytes) -> int:
    """Return about how many values a body has: its commas, and brackets that open something.

    Those in texts count too, so that nothing is parsed before it is judged.
    """
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _go_on() -> None:
    """Check no deadline, where no client waits."""


def parsed_json(
    body: bytes, most_values: int = MOST_VALUES, look: Callable[[], None] = _go_on
) -> Any:
    """Parse a request body that has not too many values.

    Args:
        body: As it came.
        most_values: How many there may be.
        look: Called between two passes over the body; raises where the time is over.

    Raises:
        ApiError: 400 if it is not UTF-8 JSON, has more values, or is nested beyond all schemas.
    """
    if len(body) > most_values and values_in(body) > most_values:
        raise bad_request(f"JSON does not validate: it has more than {most_values} values")
    look()
    try:
        # It goes a thousand levels down at most.
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"Malformed JSON: {error}") from error
    look()
    _take_whole_numbers(value)
    return value


def _take_whole_numbers(value: Any) -> None:
    """Read `1.0` and `1e0` within a value as 1: to a schema they are integers, to Python they are not.

    What is parsed is looked at, whose number of values is bounded: a body as it came may be of millions of
    quotes, escapes or blanks.

    Raises:
        ApiError: 400 if lists and mappings are nested beyond all schemas.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _whole_numbers(outer)]
        if not level:
            return
    raise bad_request("JSON does not validate: the value is nested too deeply")


def _whole_numbers(outer: Any) -> Iterator[Any]:
    """Read whole numbers of a list or mapping, and go through the lists and mappings in it."""
    for key, value in outer.items() if isinstance(outer, dict) else enumerate(outer):
        kind = type(value)
        if kind is dict or kind is list:
            yield value
        elif kind is float and value.is_integer() and abs(value) < _LARGEST_WHOLE:
            outer[key] = int(value)


def require_body(checker: Checker, body: object, length: int) -> None:
    """Check a parsed body that was so many bytes; raise a 400 with the validator's text."""
    problem = checker.problem(body, length=length)
    if problem is not None:
        raise bad_request(f"JSON does not validate: {problem}")


def query_pairs(query_string: str) -> list[tuple[str, str]]:
    """Split a query string into decoded names and values, in order.

    Raises:
        InvalidQueryError: if it has too many of them, or is not UTF-8 behind its percent-encoding.
    """
    count = query_string.count("&") + 1
    if count > _MOST_PARAMETERS:
        raise value_parsers.invalid_query(f"{count} parameters are more than {_MOST_PARAMETERS}.")
    try:
        return parse_qsl(query_string, keep_blank_values=True, encoding="utf-8", errors="strict")
    except (UnicodeDecodeError, ValueError) as error:
        raise value_parsers.invalid_query(str(error)) from error


def length_of_pairs(pairs: Iterable[tuple[str, str]]) -> int:
    """Return the characters of some names and values together."""
    return sum(map(len, chain.from_iterable(pairs)))


def require_query(checker: Checker, pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Check a query string of which the last occurrence of each parameter counts.

    Raises:
        InvalidQueryError: with the validator's text.
    """
    query = dict(pairs)
    problem = checker.problem(query, length=length_of_pairs(pairs))
    if problem is not None:
        raise value_parsers.invalid_query(problem)
    return query
