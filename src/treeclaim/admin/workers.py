# SPDX-License-Identifier: Apache-2.0
"""Clears up after workers that have ended: their gauges go, their counts are put together."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import mark_process_dead

from treeclaim.metrics_files import AllocatedFile
from treeclaim.metrics_folder import FOLDER_VARIABLE

_OF_PROCESS = re.compile(r"(counter|histogram|gauge_live\w+)_([1-9][0-9]*)\.db")
_ENDED = 0
"""In the place of a process' number: the counts of all that have ended."""

_LOCK = Lock()


@contextmanager
def without_dead_workers() -> Iterator[None]:
    """Clear up, and let nobody of this process do so again for a block, which reads the files."""
    with _LOCK:
        forget_dead_workers()
        yield


def forget_dead_workers() -> None:
    """Remove the files of ended processes; what they counted stays, in one file of each kind.

    Each of a service's reloads ends workers, and their folder may be in memory.
    """
    folder = Path(os.environ[FOLDER_VARIABLE])
    ended: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.db")):
        match = _OF_PROCESS.fullmatch(path.name)
        if match is None or Path(f"/proc/{match[2]}").exists():
            continue
        if match[1].startswith("gauge"):
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
    # No name that a reader of the folder takes for metrics.
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
