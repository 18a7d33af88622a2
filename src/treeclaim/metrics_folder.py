# SPDX-License-Identifier: Apache-2.0
"""The folder of the metrics of all processes of a service; each process has a slot.

A slot is the lowest number whose file `slot-N.lock` a process can lock. The kernel unlocks the file when the process
ends, and the next process with that slot continues its counters, so files do not accumulate. prometheus_client maps
the files of a slot. This module allocates their blocks first, because on a full disk a write to a mapped file
without blocks kills the process.

The first process of `treeclaim serve` creates the folder, but counts nothing. For it, this module does not import
prometheus_client.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

_KINDS = ("counter", "histogram", "gauge_livemax")
"""Prefixes of prometheus_client's file names."""

_LIVE = "gauge_livemax"
"""The kind of metrics that ends with its process."""

_FILE_BYTES = 1 << 18
"""Bytes of a file, of which all series of the service take a third."""


def provide_folder() -> None:
    """Create a temporary folder and export its path to child processes, unless the environment has one."""
    if os.environ.get(FOLDER_VARIABLE):
        return
    try:
        folder = tempfile.mkdtemp(prefix="treeclaim-metrics-")
    except OSError:
        return
    os.environ[FOLDER_VARIABLE] = folder
    _remove_at_exit(folder)


def _remove_at_exit(folder: str) -> None:
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)


_MEMORY = Path("/dev/shm")  # noqa: S108 - a private folder is made in it


class Slots:
    """The slots of a folder.

    Attributes:
        is_hidden: Whether the metrics of this process are in another folder, which is not shown.
    """

    def __init__(self, folder: Path) -> None:
        """Lock a slot for this process.

        Raises:
            OSError: if the disk has no room for its files.
        """
        self.is_hidden = False
        self._folder = folder
        self._process = os.getpid()
        self._lock, self._number = self._lock_free_slot(self._process)

    def get_number(self) -> int:
        """Return the slot of this process; after a fork, lock a new slot.

        A process without room for its files counts in a folder in memory, which is not shown.
        """
        process = os.getpid()
        if process != self._process:
            self._process = process
            # The parent still holds the lock of the inherited slot.
            os.close(self._lock)
            try:
                self._lock, self._number = self._lock_free_slot(process)
            except OSError:
                self._hide(process)
        return self._number

    def _hide(self, process: int) -> None:
        self.is_hidden = True
        with suppress(OSError):
            folder = tempfile.mkdtemp(prefix="treeclaim-metrics-", dir=_MEMORY)
            os.environ[FOLDER_VARIABLE] = folder
            _remove_at_exit(folder)
            self._folder = Path(folder)
            self._lock, self._number = self._lock_free_slot(process)

    def _lock_free_slot(self, process: int) -> tuple[int, int]:
        for number in count():
            descriptor = self._try_to_lock(number)
            if descriptor is None:
                continue
            try:
                self._prepare(number)
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, str(process).encode(), 0)
            except OSError:
                os.close(descriptor)
                raise
            return descriptor, number
        raise AssertionError("numbers do not end")

    def _try_to_lock(self, number: int) -> int | None:
        path = self._folder / f"slot-{number}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def _prepare(self, number: int) -> None:
        """Remove the gauges of the slot's former process, and allocate all blocks."""
        (self._folder / f"{_LIVE}_{number}.db").unlink(missing_ok=True)
        for kind in _KINDS:
            path = self._folder / f"{kind}_{number}.db"
            if not path.exists():
                # Renamed after the allocation, because readers reject an empty file.
                draft_path = path.with_suffix(".new")
                try:
                    with draft_path.open("wb") as file:
                        os.posix_fallocate(file.fileno(), 0, _FILE_BYTES)
                    draft_path.rename(path)
                except OSError:
                    draft_path.unlink(missing_ok=True)
                    raise

    def find_living(self) -> set[str]:
        """Return the ids of the processes with a slot; remove the gauges of ended processes."""
        living = set()
        for path in self._folder.glob("slot-*.lock"):
            number = int(path.stem.partition("-")[2])
            descriptor = self._try_to_lock(number)
            if descriptor is None:
                living.add(path.read_text())
                continue
            try:
                (self._folder / f"{_LIVE}_{number}.db").unlink(missing_ok=True)
            finally:
                os.close(descriptor)
        return living - {""}
