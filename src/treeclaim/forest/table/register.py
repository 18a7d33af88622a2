# SPDX-License-Identifier: Apache-2.0
"""Who has which handle, and in which row each provider is.

A **handle** is a small number that stands for a provider as long as that is there, whatever row it is
in. A new provider gets that of a former one, if there is any.
"""

import numpy as np

from treeclaim.forest.table.columns import NO_ROW, Column, Rows
from treeclaim.forest.table.provider_table import ProviderTable
from treeclaim.forest.table.row_index import RowIndex
from treeclaim.model.provider import ProviderRecord


class Register:
    """Rows by handle, and by each of the keys that providers have.

    Attributes:
        row: Column of rows by handle, `NO_ROW` for a handle that nobody has.
        by_id, by_uuid, by_name: Rows by these keys.
    """

    def __init__(self, table: ProviderTable) -> None:
        """Begin with nobody. The rows are those of a table, which is not read yet."""
        self._table = table
        self._free: list[int] = []
        self.row = Column(np.int32)
        self.by_id = RowIndex(self.row, lambda row: int(table.id.values[row]))
        self.by_uuid = RowIndex(self.row, table.uuid_of)
        self.by_name = RowIndex(self.row, lambda row: table.names([row])[0])

    def __len__(self) -> int:
        """Return how many handles there are, free ones included."""
        return len(self.row)

    def begin_with_all(self) -> None:
        """Take the rows of the table: each provider's handle is its row."""
        table, count = self._table, self._table.row_count
        self.row.extend(np.arange(count))
        self.by_id.begin_with(table.id.values.tolist(), count)
        self.by_uuid.begin_with((uuid.decode() for uuid in table.uuid.values.tolist()), count)
        self.by_name.begin_with(table.names(range(count)), count)

    def enter(self, record: ProviderRecord) -> int:
        """Return the handle of a new provider, which is given its row later."""
        if self._free:
            handle = self._free.pop()
        else:
            handle = len(self.row)
            self.row.extend([NO_ROW])
        self.by_id[record.id] = handle
        self.by_uuid[record.uuid] = handle
        self.by_name[record.name] = handle
        return handle

    def keep(self, row: int, record: ProviderRecord) -> int:
        """Return the handle of a row whose provider has, from now on, the name that a record tells."""
        handle = int(self._table.handle.values[row])
        (name,) = self._table.names([row])
        if record.name != name:
            if self.by_name.get(name) == row:
                del self.by_name[name]
            self.by_name[record.name] = handle
        return handle

    def leave(self, row: int) -> int:
        """Return the handle of a row whose provider is gone; it is free from now on.

        Keys that another provider has by now stay.
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
        self._free.append(handle)
        return handle

    def place(self, rows: Rows) -> None:
        """Note that the providers of some rows are there."""
        self.row.values[self._table.handle.values[rows]] = rows

    def place_all(self, rows: Column) -> None:
        """Note the rows of all providers, by handle."""
        count = min(len(rows), len(self.row))
        self.row.values[:count] = rows.values[:count]
        self.row.values[self._free] = NO_ROW
