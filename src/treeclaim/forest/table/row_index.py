# SPDX-License-Identifier: Apache-2.0
"""Which row has a key, for millions of keys in little memory."""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

_Key = TypeVar("_Key", bound=Hashable)

_NONE = -1


class RowIndex(Generic[_Key]):
    """Rows by key.

    Those of a full load are two sorted arrays, twelve bytes for each; a dict would take a hundred
    and more. What changes afterwards is in a dict that is looked at first.

    Args:
        key_of: Returns the key that a row has now. Hashes are not unique, so this decides.
    """

    def __init__(self, key_of: Callable[[int], _Key]) -> None:
        self._key_of = key_of
        self._hashes: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._rows: npt.NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._changed: dict[_Key, int] = {}

    def begin_with(self, keys: Iterable[_Key], count: int) -> None:
        """Take the keys of the first rows, all different, instead of what was known."""
        hashes = np.fromiter(map(hash, keys), dtype=np.int64, count=count)
        order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[order]
        self._rows = order.astype(np.int32)
        self._changed = {}

    def get(self, key: _Key) -> int | None:
        """Return the row of a key, or None."""
        row = self._changed.get(key)
        if row is None:
            return self._first_known(key)
        return None if row == _NONE else row

    def __contains__(self, key: _Key) -> bool:
        """Tell whether some row has a key."""
        return self.get(key) is not None

    def __setitem__(self, key: _Key, row: int) -> None:
        """Note the row of a key."""
        self._changed[key] = row

    def __delitem__(self, key: _Key) -> None:
        """Forget a key."""
        self._changed[key] = _NONE

    def _first_known(self, key: _Key) -> int | None:
        """Return the row that a full load gave to a key that has not changed since."""
        wanted = np.int64(hash(key))
        first = int(self._hashes.searchsorted(wanted))
        for at in range(first, len(self._hashes)):
            if self._hashes[at] != wanted:
                return None
            row = int(self._rows[at])
            if self._key_of(row) == key:
                return row
        return None
