# SPDX-License-Identifier: Apache-2.0
"""A least-recently-used cache of immutable values, bounded in bytes.

Arrays of cached values are read-only, for the code that made them and for all readers. A write into
a shared array therefore fails at once (`ValueError` of numpy) instead of changing answers.
"""

import dataclasses
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Protocol, TypeVar, cast

import numpy as np


class SizedValue(Protocol):
    """A value with a known size."""

    @property
    def nbytes(self) -> int:
        """Return the bytes that the value takes."""
        ...


CachedValue = SizedValue | tuple[SizedValue, ...]
"""A value, or a tuple of values."""

_Value = TypeVar("_Value", bound=CachedValue)

_OVERHEAD = 500
"""Bytes that are counted for the containers of each value."""


def size_of(key: object) -> int:
    """Return the bytes of a key; keys contain input, which may be long."""
    measure = _measures.get(type(key))
    if measure is None:
        measure = _measures[type(key)] = _measure_of(type(key))
    return measure(key)


_measures: dict[type, Callable[[Any], int]] = {}
"""Functions that measure keys, by type; finding one takes longer than measuring most keys."""


def _measure_of(kind: type) -> Callable[[Any], int]:
    if hasattr(kind, "nbytes"):
        # Such a value is stored elsewhere, or counted with the value of this key.
        return lambda _: 0
    if issubclass(kind, tuple | frozenset):
        return lambda key: sys.getsizeof(key) + _sum_sizes(key)
    if issubclass(kind, Mapping):
        return lambda key: sys.getsizeof(key) + _sum_sizes(key) + _sum_sizes(key.values())
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return lambda key: sys.getsizeof(key) + _sum_sizes([getattr(key, name) for name in names])
    return sys.getsizeof


def _sum_sizes(parts: Iterable[object]) -> int:
    # Empty tuples, False and so on are singletons, which take no memory.
    nonempty_parts = list(filter(None, parts))
    if set(map(type, nonempty_parts)) == {str}:
        # Fast path: a request may name thousands of providers and aggregates.
        return sum(map(sys.getsizeof, nonempty_parts))
    return sum(map(size_of, nonempty_parts))


def _set_writable(value: object, *, may_write: bool) -> None:
    """Make the arrays in a value and its immutable containers writable or read-only.

    Mutable objects that the value refers to are left unchanged.
    """
    if isinstance(value, np.ndarray):
        value.flags.writeable = may_write
    elif isinstance(value, tuple):
        for part in value:
            _set_writable(part, may_write=may_write)
    elif isinstance(value, Mapping):
        for part in value.values():
            _set_writable(part, may_write=may_write)
    elif _is_frozen(type(value)):
        for field in dataclasses.fields(cast("Any", value)):
            _set_writable(getattr(value, field.name), may_write=may_write)


def _is_frozen(kind: type) -> bool:
    parameters = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


class ByteCache:
    """Values by key; the least recently used values are evicted first.

    Attributes:
        most_bytes: Memory that all values together may take.
    """

    def __init__(
        self,
        most_bytes: int,
        key_bytes: Callable[[Any], int] | None = size_of,
        *,
        makes_read_only: bool = True,
    ) -> None:
        """Create an empty cache.

        `key_bytes` measures a key; it is None where values include their keys. `makes_read_only` is False
        for values without writable arrays, as finding these in a large value takes long.
        """
        self.most_bytes = most_bytes
        self._makes_read_only = makes_read_only
        self._key_bytes = key_bytes
        self._values: OrderedDict[Hashable, tuple[CachedValue, int, Hashable]] = OrderedDict()
        """Values with their bytes and their keys, by key."""
        self._bytes = 0
        # A long answer is drawn while other threads use the Forest.
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._values.clear()
            self._bytes = 0

    def find(self, key: Hashable) -> CachedValue | None:
        """Return the value of a key, or None."""
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            # The stored key is found by identity, without a comparison.
            self._values.move_to_end(entry[2])
        return entry[0]

    def keep(self, key: Hashable, value: CachedValue, *, replaces: bool = False) -> None:
        """Store a value, and make its arrays read-only; an existing value stays unless `replaces`."""
        if self._makes_read_only:
            _set_writable(value, may_write=False)
        parts = value if isinstance(value, tuple) else (value,)
        nbytes = sum(part.nbytes for part in parts) + _OVERHEAD
        if self._key_bytes is not None:
            nbytes += self._key_bytes(key)
        with self._lock:
            if key in self._values:
                if not replaces:
                    return
                self._drop(key)
            self._values[key] = value, nbytes, key
            self._bytes += nbytes
            while self._bytes > self.most_bytes:
                self._drop(next(iter(self._values)))

    def take(self, key: Hashable) -> CachedValue | None:
        """Remove and return the value of a key, or None.

        The caller becomes the owner, and may write into its arrays.
        """
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            self._drop(key)
        if self._makes_read_only:
            _set_writable(entry[0], may_write=True)
        return entry[0]

    def _drop(self, key: Hashable) -> None:
        self._bytes -= self._values.pop(key)[1]

    def get(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return the value of a key; make and store it if it is missing."""
        cached_value = self.find(key)
        if cached_value is not None:
            return cast("_Value", cached_value)
        value = make()
        self.keep(key, value)
        return value
