# SPDX-License-Identifier: Apache-2.0
"""Keeps what was worked out until the shape of the Forest changes, within some bytes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar


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
    """Values by what they were made of; those that were not asked for the longest go first."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._bytes = 0

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], _Value], most_bytes: int) -> _Value:
        """Return the value of a key, made now if it is not known.

        Args:
            key: What the value depends on, besides the shape of the Forest.
            make: Makes the value.
            most_bytes: Memory that all values together may take.
        """
        value: _Value | None = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
            return value
        value = make()
        self._values[key] = value
        self._bytes += value.nbytes + _OVERHEAD
        while self._bytes > most_bytes:
            _, oldest = self._values.popitem(last=False)
            self._bytes -= oldest.nbytes + _OVERHEAD
        return value
