# SPDX-License-Identifier: Apache-2.0
"""Errors of queries for allocation candidates."""

from treeclaim.model.errors import InvalidValueError, TreeclaimError


class InvalidQueryError(InvalidValueError):
    """A query cannot be parsed.

    Attributes:
        text: The contract's phrase.
        code: Last word of the error code: `bad_value`, `missing_value` or `duplicate_key`; empty without a code.
        parameter: Name of the wrong parameter; empty where the phrase is not about a single one.
    """

    message = "{text}"
    text: str
    code: str = ""
    parameter: str = ""


def unusable_parameter(parameter: str, problem: str) -> InvalidQueryError:
    """Return the error for a value that a parameter of the extension must not have."""
    text = f"Invalid query string parameters: '{parameter}' cannot be used like this: {problem}"
    return InvalidQueryError(text, "bad_value", parameter)


def repeated_parameter(parameter: str) -> InvalidQueryError:
    """Return the error for a parameter that may occur once only."""
    text = f"Query parameter {parameter!r} may be specified only once."
    return InvalidQueryError(text, "duplicate_key", parameter)


class QueryError(InvalidValueError):
    """A query of a call has a name that does not exist.

    Attributes:
        where: Position of the query in the call.
        error: The fault of the query.
    """

    message = "{where}: {error}"
    where: str
    error: TreeclaimError
