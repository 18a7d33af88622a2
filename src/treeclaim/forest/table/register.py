# SPDX-License-Identifier: Apache-2.0
"""Handles of providers, and the row of each handle.

A **handle** is a small number that identifies a provider for its whole life, in whatever row it is.
Handles of deleted providers are reused.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import nsmallest
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import NO_ROW, Column, Rows, search_ascending
from treeclaim.forest.table.provider_table import ProviderTable
from treeclaim.model.provider import ProviderRecord

FEWEST_CHANGED_KEYS = 4096
"""Keys of new or renamed providers that always stay in a dict beside the sorted arrays (`RowIndex`)."""

_Key = TypeVar("_Key", bound=Hashable)


class RowIndex(Generic[_Key]):
    """Rows by a unique key of providers.

    Most handles are in two sorted arrays, at twelve bytes each; an entry of a dict takes a hundred and
    keeps its key. Recent changes are in a dict, which is searched first, until `fold` moves them.

    `row` holds rows by handle, or `NO_ROW`. `key_of` returns the present key of a row; it checks every
    hit, because hashes are not unique and keys change.
    """

    def __init__(self, row: Column, key_of: Callable[[int], _Key]) -> None:
        self._row = row
        self._key_of = key_of
        self._hashes: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._handles: npt.NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._changed: dict[_Key, int] = {}

    def load(self, keys: Iterable[_Key], count: int) -> None:
        """Replace all entries by the keys of the first handles."""
        hashes = np.fromiter(map(hash, keys), dtype=np.int64, count=count)
        order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[order]
        self._handles = order.astype(np.int32)
        self._changed = {}

    def fold(self) -> bool:
        """Move changed keys into the sorted arrays if they are more than an eighth of these; return whether.

        Every handle must have its row. Moving 90,000 new providers to 700,000 took 50 ms.
        """
        count = len(self._changed)
        if count <= max(FEWEST_CHANGED_KEYS, len(self._hashes) // 8):
            return False
        hashes = np.fromiter(map(hash, self._changed), dtype=np.int64, count=count)
        handles = np.fromiter(self._changed.values(), dtype=np.int32, count=count)
        # The changed key of a handle replaces its former one.
        is_former = np.zeros(len(self._row), dtype=np.bool_)
        is_former[handles] = True
        is_former |= self._row.values == NO_ROW
        is_kept = ~is_former[self._handles]
        hashes = np.concatenate([self._hashes[is_kept], hashes])
        handles = np.concatenate([self._handles[is_kept], handles])
        # A stable sort is fast on the part that ascends.
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._handles, self._changed = hashes[order], handles[order], {}
        return True

    def get(self, key: _Key) -> int | None:
        """Return the row of a key, or None."""
        hashed = hash(key)
        return self._row_of(key, hashed, int(search_ascending(self._hashes, np.int64(hashed))))

    def get_each(self, keys: Sequence[_Key]) -> list[int | None]:
        """Return the row of each key, or None."""
        hashes = [hash(key) for key in keys]
        at = search_ascending(self._hashes, hashes).tolist()
        return [self._row_of(*of_key) for of_key in zip(keys, hashes, at, strict=True)]

    def rows_after(self: "RowIndex[int]", key: int, count: int) -> Rows:
        """Return the rows of the smallest integer keys above a bound, in any order.

        Pages are read without sorting all keys for each page.
        """
        pairs: list[tuple[int, int | None]] = []
        first = int(search_ascending(self._hashes, key, side="right"))
        # Integers are their own hashes. The arrays still have keys of deleted providers.
        while len(pairs) < count and first < len(self._hashes):
            keys = self._hashes[first : first + count].tolist()
            pairs += [
                pair for pair in zip(keys, self.get_each(keys), strict=True) if pair[1] is not None
            ]
            first += count
        later = nsmallest(
            count, (changed_key for changed_key in self._changed if changed_key > key)
        )
        pairs += zip(later, self.get_each(later), strict=True)
        rows = [row for _, row in nsmallest(count, set(pairs))]
        return np.array(rows, dtype=np.int64)

    def __contains__(self, key: _Key) -> bool:
        """Return whether a row has this key."""
        return self.get(key) is not None

    def __setitem__(self, key: _Key, handle: int) -> None:
        """Set the handle of a key; the row must get that key before the next look-up."""
        self._changed[key] = handle

    def __delitem__(self, key: _Key) -> None:
        """Remove a key; the row must lose that key before the next look-up."""
        self._changed.pop(key, None)

    def _row_of(self, key: _Key, key_hash: int, first: int) -> int | None:
        """Return the row of a key, given its hash and the first index of this hash in the arrays."""
        handle = self._changed.get(key)
        if handle is not None:
            return int(self._row.values[handle])
        for at in range(first, len(self._hashes)):
            if self._hashes[at] != key_hash:
                return None
            row = int(self._row.values[self._handles[at]])
            if row != NO_ROW and self._key_of(row) == key:
                return row
        return None


class Register:
    """Rows by handle (`NO_ROW` for an unused one), and by id, UUID and name."""

    def __init__(self, table: ProviderTable) -> None:
        self._table = table
        self._free_handles: list[int] = []
        self.row = Column(np.int32)
        self.by_id = RowIndex(self.row, lambda row: int(table.id.values[row]))
        self.by_uuid = RowIndex(self.row, table.uuid_of)
        self.by_name = RowIndex(self.row, lambda row: table.names([row])[0])

    def load_all(self) -> None:
        """Index all rows of the table; the handle of each provider is its row."""
        table, count = self._table, self._table.row_count
        self.row.extend(np.arange(count))
        self.by_id.load(table.id.values.tolist(), count)
        self.by_uuid.load((uuid.decode() for uuid in table.uuid.values.tolist()), count)
        self.by_name.load(table.names(range(count)), count)

    def add(self, record: ProviderRecord) -> int:
        """Return the handle of a new provider, whose row is set later."""
        if self._free_handles:
            handle = self._free_handles.pop()
        else:
            handle = len(self.row)
            self.row.extend([NO_ROW])
        self.by_id[record.id] = handle
        self.by_uuid[record.uuid] = handle
        self.by_name[record.name] = handle
        return handle

    def rename(self, row: int, record: ProviderRecord) -> int:
        """Rename the provider of a row as in a record; return its handle."""
        handle = int(self._table.handle.values[row])
        (name,) = self._table.names([row])
        if record.name != name:
            if self.by_name.get(name) == row:
                del self.by_name[name]
            self.by_name[record.name] = handle
        return handle

    def remove(self, row: int) -> None:
        """Release the handle and the keys of a row whose provider is gone.

        Keys that another provider has taken over remain.
        """
        (name,) = self._table.names([row])
        if self.by_name.get(name) == row:
            del self.by_name[name]
        uuid, provider_id = self._table.uuid_of(row), int(self._table.id.values[row])
        if self.by_uuid.get(uuid) == row:
            del self.by_uuid[uuid]
        if self.by_id.get(provider_id) == row:
            del self.by_id[provider_id]
        handle = int(self._table.handle.values[row])
        self.row.values[handle] = NO_ROW
        self._free_handles.append(handle)

    def fold(self) -> None:
        """Move the recent changes of at most one kind of key into sorted arrays."""
        for fold in (self.by_id.fold, self.by_uuid.fold, self.by_name.fold):
            if fold():
                return

    def set_rows(self, rows: Rows) -> None:
        """Set the rows of the providers in these rows."""
        self.row.values[self._table.handle.values[rows]] = rows
