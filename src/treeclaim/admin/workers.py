# SPDX-License-Identifier: Apache-2.0
"""Removes the gauges of workers that have ended."""

import os
import re
from pathlib import Path

from prometheus_client.multiprocess import mark_process_dead

from treeclaim.metrics_folder import FOLDER_VARIABLE

_LIVING = re.compile(r"gauge_live\w+_(\d+)\.db")


def forget_dead_workers() -> None:
    """Remove the gauges of ended processes; their counters stay in the sums."""
    for path in Path(os.environ[FOLDER_VARIABLE]).glob("gauge_live*.db"):
        match = _LIVING.fullmatch(path.name)
        if match and not Path(f"/proc/{match[1]}").exists():
            mark_process_dead(int(match[1]))  # type: ignore[no-untyped-call]
