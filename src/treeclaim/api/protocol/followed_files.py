# SPDX-License-Identifier: Apache-2.0
"""Files that a running service reads again when they change.

While the files are invalid, their last valid contents apply: a typing error must neither open nor close the service.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

_LOG = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
"""Seconds between checks of the files: a check may cost more than a search."""

_Contents = TypeVar("_Contents")


class FollowedFiles(Generic[_Contents]):
    """The last valid contents of files."""

    def __init__(
        self,
        contents_name: str,
        list_files: Callable[[], Iterable[Path]],
        read: Callable[[], _Contents],
        fault: type[Exception],
    ) -> None:
        """Read the files.

        Args:
            contents_name: The contents, for the log.
            list_files: Lists the files; missing files are ignored.
            read: Reads all files.
            fault: The exception that `read` raises for invalid files.

        Raises:
            Exception: `fault`, if the files are invalid now.
        """
        self._contents_name = contents_name
        self._list_files = list_files
        self._read_contents = read
        self._fault = fault
        self._lock = threading.Lock()
        self._state = self._read_state()
        self._check_at = time.monotonic() + CHECK_SECONDS
        self._contents = read()

    def contents(self) -> _Contents:
        """Return the contents; read the files again if they have changed."""
        if time.monotonic() >= self._check_at:
            self._follow()
        return self._contents

    def _follow(self) -> None:
        with self._lock:
            if time.monotonic() < self._check_at:
                return
            self._check_at = time.monotonic() + CHECK_SECONDS
            state = self._read_state()
            if state == self._state:
                return
            # An invalid file is read and reported once.
            self._state = state
            try:
                self._contents = self._read_contents()
            except self._fault as error:
                _LOG.error("The last valid %s still apply: %s", self._contents_name, error)
            else:
                _LOG.info("The changed %s apply now.", self._contents_name)

    def _read_state(self) -> list[tuple[str, int, int, int]]:
        """Return a value that changes when a file appears, changes or disappears."""
        states = []
        for path in self._list_files():
            try:
                status = path.stat()
            except OSError:
                continue
            states.append((str(path), status.st_mtime_ns, status.st_size, status.st_ino))
        return states
