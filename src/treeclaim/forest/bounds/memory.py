# SPDX-License-Identifier: Apache-2.0
"""Keeps what was worked out until the shape of the Forest changes, within some bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar, cast


class Sized(Protocol):
    """A value that knows how much memory it takes."""

    @property
    def nbytes(self) -> int:
        """Return the bytes it takes."""
        ...


_Value = TypeVar("_Value", bound=Sized)

_OVERHEAD = 1_000
"""Bytes that are counted for a value besides its own, for its key and all that holds it."""


class Memory:
    """Values by what they depend on; those that were not asked for the longest go first.

    Attributes:
        most_bytes: Memory that all values together may take.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._values: OrderedDict[Hashable, Sized] = OrderedDict()
        self._bytes = 0
        # A long answer is drawn while others use the Forest.
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self._bytes = 0

    def find(self, key: Hashable) -> Sized | None:
        """Return the value of a key, None if it is not known."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
        return value

    def keep(self, key: Hashable, value: Sized) -> None:
        """Keep the value of a key, if none is known."""
        with self._lock:
            if key in self._values:
                return
            self._values[key] = value
            self._bytes += value.nbytes + _OVERHEAD
            while self._bytes > self.most_bytes:
                _, oldest = self._values.popitem(last=False)
                self._bytes -= oldest.nbytes + _OVERHEAD

    def get(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return the value of a key, made now if it is not known."""
        known = self.find(key)
        if known is not None:
            return cast("_Value", known)
        value = make()
        self.keep(key, value)
        return value
