# SPDX-License-Identifier: Apache-2.0
"""The cache of results about requests, bounded in bytes.

Parsing the same header for each request is slow, so the last results are kept. A client can send any
number of values of any length; only results for short ones are kept, so that the number of entries
times the longest bounds the memory.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def remembering_short(
    entries: int, longest: int
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Cache the last results of a function, but only for short arguments.

    Args:
        entries: How many results are kept.
        longest: Characters of all texts among the positional arguments together; with more the
            function is called each time.
    """

    def remembering(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @lru_cache(entries)
        def remembered(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
            # Asked once for each entry, not each time: that took longer than what is remembered.
            if length_of(arguments) > longest:
                raise _TooLongError
            return function(*arguments, **named)

        @wraps(function)
        def ask(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
            try:
                return remembered(*arguments, **named)  # type: ignore[arg-type]
            except _TooLongError:
                return function(*arguments, **named)

        return ask

    return remembering


class _TooLongError(Exception):
    """Keeps a result from being remembered."""


def length_of(value: object) -> int:
    """Return the characters of a text, or of all texts in a tuple; 0 for anything else."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple):
        return sum(map(length_of, value))
    return 0
