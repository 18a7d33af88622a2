# SPDX-License-Identifier: Apache-2.0
"""Arrays that grow at the end, logs of recent changes, and sums that cannot overflow.

All tables of the Forest only grow: a changed tree is written again at the end, and its old rows
are marked dead. Views of a column therefore stay valid, and appending a row takes constant time on
average.

A full column is copied to an array of twice the size. A large column has private pages, which the
kernel allocates on the first write and reclaims with the column. Unused capacity therefore takes no
memory, and a new table has capacity for all rows until its compaction (`compaction.py`).

Capacities may approach 64 bits, so amounts and counts are summed in floating point. A sum of
numbers that are at least 0 is exact below 2**53; an inexact sum is never below that.
"""

import mmap
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
"""Any integers: counts, or indices into an array that the text names."""

Rows = Integers
"""Rows of providers in the table, shape (n,); they depend on history."""

Trees = Integers
"""Numbers of trees in the canonical order. An anchor has the number of its tree."""

Mask = npt.NDArray[np.bool_]
"""Truth values by row, shape (rows,), unless the text says otherwise."""

NO_ROW = -1
"""The row of a missing provider: of the parent of a root, or of an unused handle."""

_Array = TypeVar("_Array", bound=npt.NDArray[Any])
_Change = TypeVar("_Change")

_FIRST_CAPACITY = 8

_LARGE = 2**20
"""Bytes from which on a column has its own pages."""

CHECKED = False
"""True to check that arrays ascend, as in all tests; the check takes as long as the work."""

_MOST_CHECKED = 10_000
"""Leading numbers that each bisection checks; some arrays are bisected again and again."""


def require_ascending(numbers: _Array) -> _Array:
    """Return numbers that callers bisect or treat as ranges.

    Raises:
        ValueError: if `CHECKED` and the numbers do not ascend.
    """
    if CHECKED and bool((numbers[1:] < numbers[:-1]).any()):
        raise ValueError("these numbers have to ascend")
    return numbers


def search_ascending(
    numbers: npt.NDArray[Any], values: Any, side: Literal["left", "right"] = "left"
) -> Any:
    """Return the insertion points in ascending numbers, as `numpy.searchsorted` does.

    The Forest bisects with this function alone, so that tests check the order of every array.

    Raises:
        ValueError: if `CHECKED` and the numbers do not ascend.
    """
    if CHECKED:
        require_ascending(numbers[:_MOST_CHECKED])
    return numbers.searchsorted(values, side=side)


def find_ascending(
    numbers: npt.NDArray[Any], sought_numbers: npt.NDArray[Any]
) -> tuple[Mask, Integers]:
    """Return which sought numbers are among ascending ones, and all insertion points."""
    at = search_ascending(numbers, sought_numbers)
    is_found = at < len(numbers)
    is_found[is_found] = numbers[at[is_found]] == sought_numbers[is_found]
    return is_found, at


def expand_ranges(first: Integers, counts: Integers) -> Integers:
    """Return the numbers of all ranges, concatenated, given the starts and lengths of the ranges."""
    before = counts.cumsum() - counts
    numbers: Integers = (first - before).repeat(counts)
    return numbers + np.arange(len(numbers))


def read_only(values: _Array) -> _Array:
    """Return a read-only view of an array, which shows later writes."""
    view = values.view()
    view.flags.writeable = False
    return view


def merge_rows(parts: Sequence[Rows]) -> Rows:
    """Return the distinct numbers of all arrays, ascending."""
    numbers: Rows = np.concatenate(parts)
    # A stable sort is fast on ascending runs, which most arrays are.
    numbers.sort(kind="stable")
    is_new = np.empty(len(numbers), dtype=np.bool_)
    is_new[:1] = True
    np.not_equal(numbers[1:], numbers[:-1], out=is_new[1:])
    distinct: Rows = numbers[is_new]
    return distinct


class Column:
    """A one-dimensional array that can grow.

    Attributes:
        values: The filled part as a view, writable in place.
    """

    __slots__ = ("_buffer", "values")

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._buffer: npt.NDArray[Any] = np.empty(_FIRST_CAPACITY, dtype=dtype)
        self.values: npt.NDArray[Any] = self._buffer[:0]

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> "Column":
        """Return a column with a copy of an array."""
        column = cls(values.dtype)
        column.extend(values)
        return column

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.values)

    def extend(self, items: Sequence[Any] | npt.NDArray[Any]) -> None:
        """Append items; older views keep their contents."""
        old_count = len(self.values)
        new_count = old_count + len(items)
        if new_count > len(self._buffer):
            # Numpy fills an array of objects with None, so its unused capacity takes memory.
            self.make_room(
                new_count + new_count // 8 + 8 if self._buffer.dtype.hasobject else 2 * new_count
            )
        self._buffer[old_count:new_count] = items
        self.values = self._buffer[:new_count]

    @property
    def room(self) -> int:
        """Return the number of items that fit before the array is copied."""
        return len(self._buffer)

    def make_room(self, count: int) -> None:
        """Reserve capacity for this many items in total."""
        if count > len(self._buffer):
            grown = _room(count, self._buffer.dtype)
            grown[: len(self.values)] = self.values
            self._buffer = grown
            self.values = grown[: len(self.values)]


def _room(count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    size = count * dtype.itemsize
    if size < _LARGE or dtype.hasobject:
        return np.empty(count, dtype=dtype)
    # Private pages: a forked process must not see writes of this process.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), dtype=dtype)


class RecentEntries(Generic[_Change]):
    """Recent changes in order, up to a maximum.

    Attributes:
        mark: Identifies the present state; every change raises it.
    """

    __slots__ = ("_changes", "mark")

    def __init__(self, most: int) -> None:
        self.mark = 0
        self._changes: deque[_Change] = deque(maxlen=most)

    def append(self, changes: Sequence[_Change]) -> None:
        """Append changes."""
        self.mark += len(changes)
        self._changes.extend(changes)

    def invalidate(self) -> None:
        """Record a change that readers cannot follow."""
        self.mark += 1
        self._changes.clear()

    def entries_since(self, mark: int) -> Sequence[_Change] | None:
        """Return the changes since a mark, in order; None if they are no longer recorded."""
        count = self.mark - mark
        if not 0 <= count <= len(self._changes):
            return None
        return list(islice(reversed(self._changes), count))[::-1]


GREATEST = 2**53 - 1
"""Greatest number that is shown (contract page 98, section 1); all JSON parsers read it exactly."""


def sum_by_part(part: Integers, values: npt.NDArray[Any], parts: int) -> Integers:
    """Return the sum of the values of each part, at most `GREATEST`; negative values count as 0.

    `part` holds the number of the part of each value.
    """
    weights = np.clip(values.astype(np.float64), 0, float(GREATEST))
    sums = np.bincount(part, weights=weights, minlength=parts)
    capped_sums: Integers = np.minimum(sums, float(GREATEST)).astype(np.int64)
    return capped_sums


def sum_capped(values: npt.NDArray[Any]) -> int:
    """Return the sum of all values, as `sum_by_part` does."""
    return int(sum_by_part(np.zeros(len(values), dtype=np.int64), values, 1)[0])


def cap_count(count: int) -> int:
    """Return a count, at most `GREATEST`."""
    return min(count, GREATEST)
