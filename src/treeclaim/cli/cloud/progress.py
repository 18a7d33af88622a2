# SPDX-License-Identifier: Apache-2.0
"""How far a long command is: on standard error, and only where somebody looks at it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Report = Callable[[str, int, int], None]
"""Told a stage, how much of it is done, and how much there is."""


@contextmanager
def shown_progress() -> Iterator[Report]:
    """Give a function that shows how far each stage is."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    is_seen = sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), disable=not is_seen) as bars:
        stages: dict[str, Any] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bars.add_task(stage)
            bars.update(stages[stage], completed=done, total=total)

        yield report
