# SPDX-License-Identifier: Apache-2.0
"""Arrays that grow at the end.

Every table of the Forest only ever grows: a tree whose structure changed is written again at the
end and its old rows are marked dead. So a view of a column that somebody holds stays valid, and
adding a row costs a constant amount of time on average.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
"""Any integers: counts, or indices into another array that the text names."""

Rows = Integers
"""Rows of providers in the table, which depend on history; shape (n,)."""

Positions = Integers
"""Positions of providers in the canonical order, which depend on the data alone."""

Trees = Integers
"""Numbers of trees in the canonical order. An anchor is named by that of its tree."""

Mask = npt.NDArray[np.bool_]
"""One truth value per provider row, shape (number of rows,)."""

_Array = TypeVar("_Array", bound=npt.NDArray[Any])

_FIRST_CAPACITY = 64


CHECKED = False
"""Whether arrays that have to ascend are looked at, as all tests do: it takes as long as the work."""


def ascending(numbers: _Array) -> _Array:
    """Return numbers that are searched by halves, or taken for ranges, further down.

    In any other order these would give wrong answers, and perhaps only after some history.

    Raises:
        ValueError: if they do not ascend, where that is checked.
    """
    if CHECKED and bool((numbers[1:] < numbers[:-1]).any()):
        raise ValueError("these numbers have to ascend")
    return numbers


def read_only(values: _Array) -> _Array:
    """Return an array as others may see it: it shows what is written there, and cannot be written."""
    view = values.view()
    view.flags.writeable = False
    return view


def merged(parts: Sequence[Rows]) -> Rows:
    """Return the distinct numbers of some arrays, ascending."""
    numbers: Rows = np.concatenate(parts)
    # A stable sort takes ascending runs as they are, which most of these are.
    numbers.sort(kind="stable")
    is_new = np.empty(len(numbers), dtype=np.bool_)
    is_new[:1] = True
    np.not_equal(numbers[1:], numbers[:-1], out=is_new[1:])
    distinct: Rows = numbers[is_new]
    return distinct


class Column:
    """A one-dimensional numpy array with room to grow.

    Attributes:
        values: The filled part as a view; it may be written in place.
    """

    __slots__ = ("_buffer", "values")

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._buffer: npt.NDArray[Any] = np.empty(_FIRST_CAPACITY, dtype=dtype)
        self.values: npt.NDArray[Any] = self._buffer[:0]

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.values)

    def extend(self, items: Sequence[Any] | npt.NDArray[Any]) -> None:
        """Append items; older views keep showing what they showed."""
        old = len(self.values)
        new = old + len(items)
        if new > len(self._buffer):
            grown = np.empty(max(new, 2 * len(self._buffer)), dtype=self._buffer.dtype)
            grown[:old] = self.values
            self._buffer = grown
        self._buffer[old:new] = items
        self.values = self._buffer[:new]
