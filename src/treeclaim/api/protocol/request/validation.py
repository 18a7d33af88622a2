# SPDX-License-Identifier: Apache-2.0
"""Parses bodies and query strings, and validates them by JSON schemas (contract page 00, sections 4 and 5)."""

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
"""Most characters of a body or query whose errors have the wording that clients match. Finding the most relevant error
takes up to half a second for this length, and would take minutes for the longest body."""

_MOST_ERRORS = 100
"""Most errors among which the most relevant is selected."""

_LONGEST_MESSAGE = 4_000
"""Most characters of a message: half of an error's text, which leaves room for the violated rule."""

_DEEPEST = 32
"""Most levels of a body; claims have six. For 16 MiB of brackets, the validator in Rust needs a minute to compare the items
of lists. The Python library prints each level within its parent, in quadratic time."""

_LARGEST_WHOLE = 2**63
"""The bound of converted numbers; the validator in Rust accepts 64 bits."""

_MOST_PARAMETERS = 16_384
"""Most parameters of a query. The longest address has room for 11,000; 512 complete request groups need a fifth of
that."""

MOST_VALUES = 100_000
"""Most values of a body (`count_values`): nine thousand usual claims. Their validation takes 0.03 s, without checking the
deadline."""

MOST_VALUES_IN_BULK = 500_000
"""Most values of a body whose model bounds each list: the UUIDs that fit into the longest body by default. Parsing them
takes 0.1 s."""

_PATH_SHOWN = 10
"""Most steps of the path in a brief error."""

_FORMATS = FormatChecker(formats=())


@_FORMATS.checks("uuid")
def _is_uuid(value: object) -> bool:
    # Every spelling is valid (contract page 00, section 12).
    return not isinstance(value, str) or normalised_uuid(value) is not None


class Checker:
    """A compiled schema.

    A validator in Rust, which is a hundred times faster, decides whether a value is valid. For short values, the Python
    library words the error, as clients match its texts. It may accept an invalid value: in its patterns, `$` also matches
    before a final newline.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._wording = Draft202012Validator(schema, format_checker=_FORMATS)
        self._quick = jsonschema_rs.Draft202012Validator(
            schema, formats={"uuid": _is_uuid}, validate_formats=True
        )

    def find_problem(self, value: object, *, length: int) -> str | None:
        """Return the problem of a value in one line; None if the value is valid.

        `length` is the number of characters of its text.
        """
        try:
            if self._quick.is_valid(value):
                return None
            if length > LONGEST_WORDED:
                return self._find_brief_problem(value)
            return self._find_worded_problem(value) or self._find_brief_problem(value)
        except (RecursionError, ValueError, orjson.JSONEncodeError):
            # The limit of a library, far beyond the levels of any schema.
            return "the value is nested too deeply"

    def _find_worded_problem(self, value: object) -> str | None:
        error = best_match(islice(self._wording.iter_errors(value), _MOST_ERRORS))
        if error is None:
            return None
        error.message = _shorten_middle(error.message)
        return str(error).replace("\n", " ")

    def _find_brief_problem(self, value: object) -> str:
        """Return the first problem in a text of bounded length."""
        # An iterator over the errors would compute all of them first.
        try:
            self._quick.validate(value)
        except jsonschema_rs.ValidationError as error:
            # A variable for the error would keep this frame, and so the value, alive.
            return _describe_error(error)
        return "the value is not valid"


_TOO_MANY = (ValidationErrorKind.MaxItems, ValidationErrorKind.MaxProperties)


def _describe_error(error: jsonschema_rs.ValidationError) -> str:
    path = "".join(f"[{step!r}]" for step in error.instance_path[:_PATH_SHOWN])
    message = error.message
    # The message begins with the value.
    if isinstance(error.kind, _TOO_MANY) and isinstance(error.instance, list | dict):
        message = f"{len(error.instance)} are more than {error.kind.limit}"
    return (
        f"{quote_value(message)} Failed validating {str(error.schema_path[-1])!r} on "
        f"instance{quote_value(path)}"
    )


def _shorten_middle(message: str) -> str:
    """Shorten a message that begins with a value and ends with its problem."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    half_length = _LONGEST_MESSAGE // 2
    return f"{message[:half_length]}\N{HORIZONTAL ELLIPSIS}{message[-half_length:]}"


def count_values(body: bytes) -> int:
    """Return the approximate number of values of an unparsed body: its commas and opening brackets, also in strings."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def parse_json(body: bytes, most_values: int, check_deadline: Callable[[], None]) -> Any:
    """Parse a request body; `check_deadline` is called between passes over the body.

    Raises:
        ApiError: 400 if the body is not UTF-8 JSON, is nested too deeply, or has too many values (`count_values`).
    """
    if len(body) > most_values and count_values(body) > most_values:
        raise bad_request(f"JSON does not validate: it has more than {most_values} values")
    check_deadline()
    try:
        # orjson accepts at most a thousand levels.
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"Malformed JSON: {error}") from error
    check_deadline()
    _convert_whole_numbers(value)
    return value


def _convert_whole_numbers(value: Any) -> None:
    """Convert `1.0` and `1e0` within a value to 1: in JSON schemas they are integers, but not in Python.

    Raises:
        ApiError: 400 if lists and mappings are nested too deeply.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_DEEPEST):
        level = [nested_value for container in level for nested_value in _convert_level(container)]
        if not level:
            return
    raise bad_request("JSON does not validate: the value is nested too deeply")


def _convert_level(container: Any) -> Iterator[Any]:
    """Convert the whole numbers of a list or mapping; yield the lists and mappings in it."""
    for key, value in container.items() if isinstance(container, dict) else enumerate(container):
        kind = type(value)
        if kind is dict or kind is list:
            yield value
        elif kind is float and value.is_integer() and abs(value) < _LARGEST_WHOLE:
            container[key] = int(value)


def require_body(checker: Checker, body: object, length: int) -> None:
    """Validate a parsed body of `length` bytes; raise a 400 with its problem."""
    problem = checker.find_problem(body, length=length)
    if problem is not None:
        raise bad_request(f"JSON does not validate: {problem}")


def parse_query_string(query_string: str) -> list[tuple[str, str]]:
    """Split a query string into decoded names and values, in order.

    Raises:
        InvalidQueryError: if it has too many parameters, or is not UTF-8 after percent-decoding.
    """
    count = query_string.count("&") + 1
    if count > _MOST_PARAMETERS:
        raise value_parsers.invalid_query(f"{count} parameters are more than {_MOST_PARAMETERS}.")
    try:
        return parse_qsl(query_string, keep_blank_values=True, encoding="utf-8", errors="strict")
    except (UnicodeDecodeError, ValueError) as error:
        raise value_parsers.invalid_query(str(error)) from error


def count_characters(pairs: Iterable[tuple[str, str]]) -> int:
    """Return the number of characters of all names and values."""
    return sum(map(len, chain.from_iterable(pairs)))


def require_query(checker: Checker, pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Validate a query string; the last occurrence of each parameter is effective.

    Raises:
        InvalidQueryError: with the problem.
    """
    query = dict(pairs)
    problem = checker.find_problem(query, length=count_characters(pairs))
    if problem is not None:
        raise value_parsers.invalid_query(problem)
    return query
