# SPDX-License-Identifier: Apache-2.0
"""Bodies and query strings against JSON schemas (contract page 00, sections 4 and 5)."""

import uuid
from typing import Any
from urllib.parse import parse_qsl

import jsonschema_rs
import orjson
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match

from treeclaim.api.protocol.errors import ApiError, bad_request

Schema = dict[str, Any]

_formats = FormatChecker(formats=())


@_formats.checks("uuid")
def _is_uuid(value: object) -> bool:
    """Accept every spelling that Python's uuid does (section 12)."""
    if not isinstance(value, str):
        return True
    try:
        uuid.UUID(value)
    except ValueError:
        return False
    return True


class Checker:
    """A schema made ready once, to check many values.

    A validator in Rust says a hundred times faster that nothing is wrong. What it objects to is
    judged by the one whose wording clients know.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._validator = Draft202012Validator(schema, format_checker=_formats)
        self._quick = jsonschema_rs.Draft202012Validator(
            schema, formats={"uuid": _is_uuid}, validate_formats=True
        )

    def problem(self, value: object) -> str | None:
        """Return what is wrong with a value, as the validator library words it; None if nothing.

        Clients match fragments of this wording. It is put on one line.
        """
        try:
            if self._quick.is_valid(value):
                return None
            error = best_match(self._validator.iter_errors(value))
            return None if error is None else str(error).replace("\n", " ")
        except RecursionError:
            return "the value is nested too deeply"


def parsed_json(body: bytes) -> Any:
    """Parse a request body.

    Raises:
        ApiError: 400 if it is not UTF-8 JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"Malformed JSON: {error}") from error


def require_body(checker: Checker, body: object) -> None:
    """Check a parsed body; raise a 400 with the validator's text."""
    problem = checker.problem(body)
    if problem is not None:
        raise bad_request(f"JSON does not validate: {problem}")


def invalid_query(problem: str) -> ApiError:
    """Return the 400 for a query string."""
    return bad_request(f"Invalid query string parameters: {problem}")


def query_pairs(query_string: str) -> list[tuple[str, str]]:
    """Split a query string into decoded names and values, in order.

    Raises:
        ApiError: 400 if it is not UTF-8 behind its percent-encoding.
    """
    try:
        return parse_qsl(query_string, keep_blank_values=True, encoding="utf-8", errors="strict")
    except (UnicodeDecodeError, ValueError) as error:
        raise invalid_query(str(error)) from error


def require_query(checker: Checker, pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Check a query string of which the last occurrence of each parameter counts.

    Raises:
        ApiError: 400 with the validator's text.
    """
    query = dict(pairs)
    problem = checker.problem(query)
    if problem is not None:
        raise invalid_query(problem)
    return query
