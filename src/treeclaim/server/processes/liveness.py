# SPDX-License-Identifier: Apache-2.0
"""Liveness of the processes of a generation, in shared memory."""

import asyncio
import logging
import mmap
import os
import time
from collections.abc import Callable

from treeclaim.admin import Census
from treeclaim.model.errors import TreeclaimError
from treeclaim.server.bounds import BEAT_SECONDS, SILENT_SECONDS

_LOG = logging.getLogger(__name__)

_PID, _ALIVE_AT, _READ_AT, _CELLS = 0, 1, 2, 3
"""Cells of a row: process id, 0 before the process answers; times by the monotonic clock."""


class LivenessTable:
    """A row for each process. The process writes the row, and the loader clears it.

    The table is shared with children that are forked after its creation.
    """

    def __init__(self, rows: int) -> None:
        self._cells = memoryview(mmap.mmap(-1, 8 * (_CELLS * rows + 1))).cast("d")
        self._rows = rows

    def stamp_alive(self, row: int) -> None:
        """Record that this process answers."""
        self._cells[_CELLS * row + _ALIVE_AT] = time.monotonic()
        self._cells[_CELLS * row + _PID] = os.getpid()

    def stamp_read(self, row: int) -> None:
        """Record that this process has read the inventory."""
        self._cells[_CELLS * row + _READ_AT] = time.monotonic()

    def clear(self, row: int) -> None:
        """Clear the row of an ended process."""
        for cell in range(_CELLS):
            self._cells[_CELLS * row + cell] = 0.0

    def has_begun(self, row: int) -> bool:
        """Return whether the process of a row has begun to answer."""
        return bool(self._cells[_CELLS * row + _PID])

    @property
    def is_reload_refused(self) -> bool:
        """Whether the last reload was refused."""
        return bool(self._cells[-1])

    @is_reload_refused.setter
    def is_reload_refused(self, is_refused: bool) -> None:
        self._cells[-1] = is_refused

    def take_census(self, first_row: int) -> Census:
        """Return the answering, silent and reading processes from `first_row` on."""
        oldest_stamp = time.monotonic() - SILENT_SECONDS
        answering_pids: list[int] = []
        silent_pids: list[int] = []
        reading_pids: list[int] = []
        for row in range(first_row, self._rows):
            pid, alive_at, read_at = self._cells[_CELLS * row : _CELLS * (row + 1)]
            if not pid:
                continue
            (answering_pids if alive_at >= oldest_stamp else silent_pids).append(int(pid))
            if min(alive_at, read_at) >= oldest_stamp:
                reading_pids.append(int(pid))
        return Census(answering_pids, silent_pids, reading_pids, self.is_reload_refused)


class Heartbeat:
    """Stamps the row of a worker: the event loop for life, and a request thread for reads."""

    def __init__(
        self,
        table: LivenessTable,
        row: int,
        read: Callable[[], object],
        offer: Callable[[Callable[[], None]], bool],
    ) -> None:
        """Prepare the heartbeat of a row; `beat` writes the first stamp.

        `read` reads the inventory like a request, and raises TreeclaimError on failure. `offer` runs a job in a request
        thread, and returns False if too many jobs wait.
        """
        self._table = table
        self._row = row
        self._read_inventory = read
        self._offer = offer
        self._is_reading = False

    def beat(self) -> None:
        """Stamp now, and again every `BEAT_SECONDS` while the event loop runs."""
        self._table.stamp_alive(self._row)
        if not self._is_reading:
            self._is_reading = True
            if not self._offer(self._try_to_read):
                self._is_reading = False
        asyncio.get_running_loop().call_later(BEAT_SECONDS, self.beat)

    def _try_to_read(self) -> None:
        try:
            self._read_inventory()
            self._table.stamp_read(self._row)
        except TreeclaimError as error:
            _LOG.debug("The inventory cannot be read: %s", error)
        finally:
            self._is_reading = False
