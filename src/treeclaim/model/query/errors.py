# SPDX-License-Identifier: Apache-2.0
"""Errors of queries for allocation candidates."""

from treeclaim.model.errors import TreeclaimError


class InvalidQueryError(TreeclaimError):
    """A query cannot be parsed; the text is the contract's phrase."""


class BadQueryValueError(InvalidQueryError):
    """A parameter of a query has a value that it must not have."""


class MissingQueryValueError(InvalidQueryError):
    """A query lacks a parameter."""


class RepeatedParameterError(InvalidQueryError):
    """A query has a parameter twice."""

    message = "Query parameter {name!r} may be specified only once."
    name: str


class UnusableParameterError(InvalidQueryError):
    """A parameter of the extension has a value that it must not have."""

    message = "Invalid query string parameters: '{parameter}' cannot be used like this: {problem}"
    parameter: str
    problem: str


class QueryError(TreeclaimError):
    """A query of a call has a name that does not exist.

    Attributes:
        where: Position of the query in the call.
        error: The fault of the query.
    """

    message = "{where}: {error}"
    where: str
    error: TreeclaimError
