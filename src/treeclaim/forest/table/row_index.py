# SPDX-License-Identifier: Apache-2.0
"""Which row has a key, for millions of keys in little memory.

A **handle** stands for a provider as long as that is there, whatever row it is in. So a tree that is
written again changes one array, by handle, and no index.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import NO_ROW, Column, search_ascending

_Key = TypeVar("_Key", bound=Hashable)


class RowIndex(Generic[_Key]):
    """Rows by key, which differs from provider to provider.

    Handles of a full load are two sorted arrays, twelve bytes for each; a dict would take a hundred
    and more. What changes afterwards is in a dict that is looked at first.

    Args:
        row: Column of rows by handle, or `NO_ROW`.
        key_of: Returns the key that a row has now. Hashes are not unique, and keys change, so this
            decides.
    """

    def __init__(self, row: Column, key_of: Callable[[int], _Key]) -> None:
        self._row = row
        self._key_of = key_of
        self._hashes: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._handles: npt.NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._changed: dict[_Key, int] = {}

    def begin_with(self, keys: Iterable[_Key], count: int) -> None:
        """Take the keys of the first handles, instead of what was known."""
        hashes = np.fromiter(map(hash, keys), dtype=np.int64, count=count)
        order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[order]
        self._handles = order.astype(np.int32)
        self._changed = {}

    def get(self, key: _Key) -> int | None:
        """Return the row of a key, or None."""
        hashed = hash(key)
        return self._row_of(key, hashed, int(search_ascending(self._hashes, np.int64(hashed))))

    def get_each(self, keys: Sequence[_Key]) -> list[int | None]:
        """Return the row of each of some keys, or None."""
        hashes = [hash(key) for key in keys]
        at = search_ascending(self._hashes, hashes).tolist()
        return [self._row_of(*of_key) for of_key in zip(keys, hashes, at, strict=True)]

    def __contains__(self, key: _Key) -> bool:
        """Tell whether some row has a key."""
        return self.get(key) is not None

    def __setitem__(self, key: _Key, handle: int) -> None:
        """Note that a handle has a key from now on, which its row is given before anybody asks."""
        self._changed[key] = handle

    def __delitem__(self, key: _Key) -> None:
        """Forget a key, which its row loses before anybody asks."""
        self._changed.pop(key, None)

    def _row_of(self, key: _Key, wanted: int, first: int) -> int | None:
        """Return the row of a key, given its hash and where that would be among those of a full load."""
        handle = self._changed.get(key)
        if handle is not None:
            return int(self._row.values[handle])
        for at in range(first, len(self._hashes)):
            if self._hashes[at] != wanted:
                return None
            row = int(self._row.values[self._handles[at]])
            if row != NO_ROW and self._key_of(row) == key:
                return row
        return None
