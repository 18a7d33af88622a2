# SPDX-License-Identifier: Apache-2.0
"""The cache of results about requests, bounded in bytes.

Parsing the same header for each request is slow, so the last results are kept. A client can send any
number of values of any length; only results for short ones are kept, so that the number of entries
times the longest bounds the memory.

Every request asks a dozen of these caches, so a kept result is found by one lookup, and
lengths are counted only before a result is kept.
"""

import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar, TypeVarTuple

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


def cache_short(
    entries: int = 256, longest: int = 1_024
) -> Callable[[Callable[[*_Arguments], _Result]], Callable[[*_Arguments], _Result]]:
    """Cache the last results of a function, but only for short arguments.

    Args:
        entries: How many results are kept; the oldest is dropped first.
        longest: Characters of all texts among the arguments together; with more the function is
            called each time. By default, the keys of a cache have 256 KiB.
    """

    def decorate(function: Callable[[*_Arguments], _Result]) -> Callable[[*_Arguments], _Result]:
        results: dict[tuple[*_Arguments], _Result] = {}
        guard = threading.Lock()

        @wraps(function)
        def find_or_call(*arguments: *_Arguments) -> _Result:
            try:
                return results[arguments]
            except KeyError:
                pass
            result = function(*arguments)
            if _length_of(arguments) <= longest:
                with guard:
                    if len(results) >= entries:
                        del results[next(iter(results))]
                    results[arguments] = result
            return result

        return find_or_call

    return decorate


def _length_of(values: tuple[object, ...]) -> int:
    """Return the characters of all texts in a tuple, and in the tuples in it."""
    length = 0
    for value in values:
        if isinstance(value, str):
            length += len(value)
        elif isinstance(value, tuple):
            length += _length_of(value)
    return length
