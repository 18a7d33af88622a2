# SPDX-License-Identifier: Apache-2.0
"""The files of metrics, without which a process counts for itself.

prometheus_client maps files that have no blocks yet. Where the disk is full when a page of such a
mapping is first written to, the kernel ends the process (SIGBUS). Here the blocks are allocated before
they are mapped. Where they cannot be had, the process counts in its own memory, nobody else sees
that, and it tries again later.
"""

import logging
import mmap
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict

_LOG = logging.getLogger(__name__)

_FIRST_BYTES = 1 << 16
"""What the library takes for a new file; metrics of the service are a third of it."""

_MARGIN_BYTES = 64
"""What an entry takes besides its key, at most: length, padding, two numbers."""

_NUMBERS = struct.Struct("dd")
"""The value of an entry, and its time."""

_AGAIN_SECONDS = 30.0
"""Seconds between two attempts to get a file."""


def allocate_before_mapping() -> None:
    """Let the library keep metrics in such files, from the next metric on."""
    values.MmapedDict = AllocatedFile  # type: ignore[attr-defined]


class AllocatedFile(MmapedDict):
    """Numbers by key, as the library keeps them, in a file whose blocks exist.

    Attributes:
        is_hidden: Whether they are in this process' memory alone.
    """

    _f: Any
    _m: Any
    _positions: dict[str, int]

    def __init__(self, filename: str, read_mode: bool = False) -> None:  # noqa: FBT001, FBT002 - the library's
        """Open a file, or do without."""
        self.is_hidden = False
        self._again = 0.0
        try:
            if not read_mode:
                _make(Path(filename), _FIRST_BYTES)
            super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]
        except OSError as error:
            self._fname, self._f = filename, None
            self._capacity, self._used, self._positions = _FIRST_BYTES, 8, {}
            self._m = bytearray(_FIRST_BYTES)
            self._note_used()
            self._hide(error)

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        """Set a number; the library calls this with its lock held."""
        if self.is_hidden and monotonic() >= self._again:
            self._show()
        position = self._positions.get(key)
        if position is None:
            self._init_value(key)
            position = self._positions[key]
        # In one piece, so that nobody reads half of it. The library's own way takes twice as long.
        self._m[position : position + _NUMBERS.size] = _NUMBERS.pack(value, timestamp)

    def _init_value(self, key: str) -> None:
        least = self._used + len(key.encode()) + _MARGIN_BYTES
        if least > self._capacity:
            self._grow(least)
        super()._init_value(key)  # type: ignore[no-untyped-call]

    def _grow(self, least: int) -> None:
        capacity = self._capacity
        while capacity < least:
            capacity *= 2
        if not self.is_hidden:
            try:
                os.posix_fallocate(self._f.fileno(), 0, capacity)
                self._m = mmap.mmap(self._f.fileno(), capacity)
            except OSError as error:
                self._hide(error)
        if self.is_hidden:
            room = bytearray(capacity)
            room[: self._used] = self._m[: self._used]
            self._m = room
        self._capacity = capacity

    def _hide(self, error: OSError) -> None:
        """Go on in this process' memory; what others could see is out of date, so it goes."""
        _LOG.warning("Metrics of this process are not shown: %s", error.strerror)
        self.is_hidden = True
        self._again = monotonic() + _AGAIN_SECONDS
        if self._f is not None:
            self._m = bytearray(self._m[: self._capacity])
            with suppress(OSError):
                self._f.close()
            self._f = None
        with suppress(OSError):
            Path(self._fname).unlink()

    def _show(self) -> None:
        """Move what was counted into a file, if there is room for one by now."""
        self._again = monotonic() + _AGAIN_SECONDS
        try:
            _make(Path(self._fname), self._capacity, lambda file: file.write(bytes(self._m)))
            file = open(self._fname, "r+b")  # noqa: SIM115, PTH123 - kept open, as the library does
            mapped = mmap.mmap(file.fileno(), self._capacity)
        except OSError:
            return
        self._f, self._m = file, mapped
        self.is_hidden = False
        _LOG.info("Metrics of this process are shown again")

    def _note_used(self) -> None:
        self._m[0:4] = struct.pack("i", self._used)

    def close(self) -> None:
        """Release everything; a fork of this process keeps its own numbers."""
        if self._f is not None:
            super().close()  # type: ignore[no-untyped-call]


def _make(path: Path, size: int, fill: Callable[[Any], object] | None = None) -> None:
    """Make a file that has all of its blocks; nobody sees it before.

    Raises:
        OSError: if it cannot be had; nothing is left of it.
    """
    if path.exists() and fill is None:
        # That of a process with the same number, which has ended.
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, max(size, path.stat().st_size))
        return
    draft = path.with_suffix(".new")
    try:
        with draft.open("w+b", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, size)
            if fill is not None:
                fill(file)
        draft.rename(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise
