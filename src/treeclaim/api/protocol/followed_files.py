# SPDX-License-Identifier: Apache-2.0
"""Files that a running service follows: a typing error must neither open nor close it."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

_LOG = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
"""Seconds between two checks of the files, as a check may cost more than a search."""

_Contents = TypeVar("_Contents")


class FollowedFiles(Generic[_Contents]):
    """The contents of some files; the last good ones while the files are invalid."""

    def __init__(
        self,
        what: str,
        list_files: Callable[[], Iterable[Path]],
        read: Callable[[], _Contents],
        fault: type[Exception],
    ) -> None:
        """Read the files.

        Args:
            what: The contents, for the log.
            list_files: Lists the files; those that do not exist are ignored.
            read: Reads all of them.
            fault: What `read` raises for invalid files.

        Raises:
            Exception: `fault`, if the files are invalid now.
        """
        self._what = what
        self._list_files = list_files
        self._read = read
        self._fault = fault
        self._lock = threading.Lock()
        self._state = self._find_state()
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
            state = self._find_state()
            if state == self._state:
                return
            # A broken file is read and reported once.
            self._state = state
            try:
                self._contents = self._read()
            except self._fault as error:
                _LOG.error("The last good %s stay in force: %s", self._what, error)
            else:
                _LOG.info("The changed %s are in force.", self._what)

    def _find_state(self) -> list[tuple[str, int, int, int]]:
        """Return a value that changes when a file appears, changes or disappears."""
        states = []
        for path in self._list_files():
            try:
                status = path.stat()
            except OSError:
                continue
            states.append((str(path), status.st_mtime_ns, status.st_size, status.st_ino))
        return states
