# SPDX-License-Identifier: Apache-2.0
"""A cache for the results of parsing parts of requests, bounded in bytes.

Clients can send any number of values of any length, so only results for short values are cached. Each request uses a
dozen caches: a hit is a single lookup, and lengths are counted only before a result is stored.
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
    """Cache the last results of a function for short arguments; the oldest is evicted first.

    Args:
        entries: Most cached results.
        longest: Most characters of all texts among the arguments. By default, the keys of a cache have 256 KiB.
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
            if _count_characters(arguments) <= longest:
                with guard:
                    if len(results) >= entries:
                        del results[next(iter(results))]
                    results[arguments] = result
            return result

        return find_or_call

    return decorate


def _count_characters(values: tuple[object, ...]) -> int:
    length = 0
    for value in values:
        if isinstance(value, str):
            length += len(value)
        elif isinstance(value, tuple):
            length += _count_characters(value)
    return length
