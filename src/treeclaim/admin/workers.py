# SPDX-License-Identifier: Apache-2.0
"""Clears up after processes that have ended: their gauges are removed, their counts merged."""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import mark_process_dead

from treeclaim.metrics_files import AllocatedFile
from treeclaim.metrics_folder import FOLDER_VARIABLE

_OF_PROCESS = re.compile(r"(counter|histogram|gauge_live\w+)_([1-9][0-9]*)\.(db|new)")
_ENDED = 0
"""Stands in the place of a process id: the counts of all processes that have ended."""

_PATIENCE = 5.0
"""Seconds for which a scrape waits for another process that clears up, which takes milliseconds: one that was
stopped in the middle must not take the metrics with it."""

_PAUSE = 0.01


@contextmanager
def without_dead_workers() -> Iterator[None]:
    """Clear up, and let nobody do so again for a block, which reads the files."""
    with _alone(_PATIENCE) as is_alone:
        if is_alone:
            _forget_dead_workers()
        yield


def forget_dead_workers() -> None:
    """Remove the files of ended processes; what they counted stays, in one file of each kind.

    Each process does so at its start: a service's reloads end others, the folder may be in memory, and
    perhaps nobody scrapes. A process that is doing it already does it for all.
    """
    with _alone(0.0) as is_alone:
        if is_alone:
            _forget_dead_workers()


@contextmanager
def _alone(seconds: float) -> Iterator[bool]:
    """Keep all others out for a block, in this process and others; yield whether that could be had in time."""
    deadline = time.monotonic() + seconds
    folder = os.open(os.environ[FOLDER_VARIABLE], os.O_RDONLY)
    try:
        while not (is_alone := _locked(folder)) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        yield is_alone
    finally:
        # Closing it is not enough: a process that was forked meanwhile has it open too.
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)
        os.close(folder)


def _locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _forget_dead_workers() -> None:
    folder = Path(os.environ[FOLDER_VARIABLE])
    ended: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        match = _OF_PROCESS.fullmatch(path.name)
        if match is None or Path(f"/proc/{match[2]}").exists():
            continue
        if match[3] == "new":
            # Of a process that was killed before it could count anything in it.
            path.unlink(missing_ok=True)
        elif match[1].startswith("gauge"):
            mark_process_dead(int(match[2]))  # type: ignore[no-untyped-call]
        else:
            ended.setdefault(match[1], []).append(path)
    for kind, paths in ended.items():
        _put_together(folder / f"{kind}_{_ENDED}.db", paths)


def _put_together(whole: Path, parts: list[Path]) -> None:
    """Add what is in some files to what is in one, and remove them; without room all stay."""
    sums: dict[str, float] = {}
    for path in (*([whole] if whole.exists() else ()), *parts):
        for key, value, *_ in MmapedDict.read_all_values_from_file(str(path)):  # type: ignore[no-untyped-call]
            sums[key] = sums.get(key, 0.0) + value
    # A name that readers of the folder do not take for metrics.
    draft = whole.with_suffix(".ended")
    draft.unlink(missing_ok=True)
    file = AllocatedFile(str(draft))
    for key, value in sums.items():
        file.write_value(key, value, 0.0)
    is_written = not file.is_hidden
    file.close()
    if is_written:
        draft.rename(whole)
        for path in parts:
            path.unlink(missing_ok=True)
