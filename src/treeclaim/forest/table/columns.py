# SPDX-License-Identifier: Apache-2.0
"""Arrays that grow at the end, the latest changes of their items, and sums that do not overflow.

Every table of the Forest only grows: a changed tree is written again at the
end, and its old rows are marked dead. A view of a column therefore stays valid, and
adding a row costs a constant amount of time on average.

A full column is copied to an array of twice the size. A large column has pages of its own, which the kernel
provides when they are touched, and reclaims with the column. Unwritten room therefore takes no
memory, and a new table has room for all the rows that it will hold until a smaller one replaces it
(`compaction.py`).

A capacity may be nearly as great as a 64-bit number, so sums of two of them need more bits. All
sums of amounts and of counts are made here, in floating point: of numbers that are at least 0, a sum
is exact as long as it is below 2**53, and one that is not never comes out below that.
"""

import mmap
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
"""Any integers: counts, or indices into another array that the text names."""

Rows = Integers
"""Rows of providers in the table, which depend on history; shape (n,)."""

Trees = Integers
"""Numbers of trees in the canonical order. An anchor is named by that of its tree."""

Mask = npt.NDArray[np.bool_]
"""A truth value per provider row, shape (number of rows,)."""

NO_ROW = -1
"""Stands for a row that does not exist: that of the parent of a root, or of an unused handle."""

_Array = TypeVar("_Array", bound=npt.NDArray[Any])
_Change = TypeVar("_Change")

_FIRST_CAPACITY = 8

_LARGE = 2**20
"""Bytes from which on a column has pages of its own."""

CHECKED = False
"""True to check that arrays ascend, as in all tests; the check takes as long as the work."""

_MOST_CHECKED = 10_000
"""Numbers of an array that is searched by halves again and again; of a longer one these first are looked at."""


def ascending(numbers: _Array) -> _Array:
    """Return numbers that callers search by bisection, or treat as ranges.

    In any other order these would give wrong answers, and perhaps only after some history.

    Raises:
        ValueError: if they do not ascend; checked only where assertions are on.
    """
    if CHECKED and bool((numbers[1:] < numbers[:-1]).any()):
        raise ValueError("these numbers have to ascend")
    return numbers


def search_ascending(
    numbers: npt.NDArray[Any], wanted: Any, side: Literal["left", "right"] = "left"
) -> Any:
    """Return where numbers belong among some that ascend, as `numpy.searchsorted` does.

    This is the only way in which a Forest searches by halves, so that no array can be searched unseen.

    Raises:
        ValueError: if they do not ascend, where that is checked.
    """
    if CHECKED:
        ascending(numbers[:_MOST_CHECKED])
    return numbers.searchsorted(wanted, side=side)


def expand_ranges(first: Integers, counts: Integers) -> Integers:
    """Return all numbers of some ranges, one range after the other, given the first of each and how many it has."""
    before = counts.cumsum() - counts
    numbers: Integers = (first - before).repeat(counts)
    return numbers + np.arange(len(numbers))


def read_only(values: _Array) -> _Array:
    """Return an array as others may see it: it shows what is written there, and cannot be written."""
    view = values.view()
    view.flags.writeable = False
    return view


def merge_rows(parts: Sequence[Rows]) -> Rows:
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

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> "Column":
        """Return a column with a copy of some values."""
        column = cls(values.dtype)
        column.extend(values)
        return column

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.values)

    def extend(self, items: Sequence[Any] | npt.NDArray[Any]) -> None:
        """Append items; older views keep showing what they showed."""
        old = len(self.values)
        new = old + len(items)
        if new > len(self._buffer):
            # Numpy fills an array of objects with None at once, so room for these takes memory.
            self.make_room(new + new // 8 + 8 if self._buffer.dtype.hasobject else 2 * new)
        self._buffer[old:new] = items
        self.values = self._buffer[:new]

    @property
    def room(self) -> int:
        """Return how many items there may be before they have to be copied elsewhere."""
        return len(self._buffer)

    def make_room(self, count: int) -> None:
        """Make room for this many items in total."""
        if count > len(self._buffer):
            grown = _room(count, self._buffer.dtype)
            grown[: len(self.values)] = self.values
            self._buffer = grown
            self.values = grown[: len(self.values)]


def _room(count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return an array that nothing is written into yet."""
    size = count * dtype.itemsize
    if size < _LARGE or dtype.hasobject:
        return np.empty(count, dtype=dtype)
    # A forked process must not see what this one writes, so the pages are not shared ones.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), dtype=dtype)


class RecentEntries(Generic[_Change]):
    """The latest changes in order; older ones are forgotten.

    Attributes:
        mark: Stands for the present moment.
    """

    __slots__ = ("_changes", "mark")

    def __init__(self, most: int) -> None:
        self.mark = 0
        self._changes: deque[_Change] = deque(maxlen=most)

    def note(self, changes: Sequence[_Change]) -> None:
        """Note some changes."""
        self.mark += len(changes)
        self._changes.extend(changes)

    def forget(self) -> None:
        """Note a change that cannot be followed."""
        self.mark += 1
        self._changes.clear()

    def since(self, mark: int) -> Sequence[_Change] | None:
        """Return the changes since a moment, in order; None if they are not known any more."""
        count = self.mark - mark
        if not 0 <= count <= len(self._changes):
            return None
        return list(islice(reversed(self._changes), count))[::-1]


GREATEST = 2**53 - 1
"""Greatest number that is shown (contract page 98, section 1): what every reader of JSON reads exactly.
"""


def sums_by(part: Integers, values: npt.NDArray[Any], parts: int) -> Integers:
    """Return the sum of the values of each part, `GREATEST` for all sums beyond.

    Args:
        part: The number of the part that each value belongs to.
        values: Numbers; what is less than 0 counts as 0.
        parts: How many parts there are.
    """
    weights = np.clip(values.astype(np.float64), 0, float(GREATEST))
    sums = np.bincount(part, weights=weights, minlength=parts)
    whole: Integers = np.minimum(sums, float(GREATEST)).astype(np.int64)
    return whole


def sum_of(values: npt.NDArray[Any]) -> int:
    """Return the sum of some numbers in the same way."""
    return int(sums_by(np.zeros(len(values), dtype=np.int64), values, 1)[0])


def shown(count: int) -> int:
    """Return a number as it may be shown."""
    return min(count, GREATEST)
