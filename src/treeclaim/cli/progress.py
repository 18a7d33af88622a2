# SPDX-License-Identifier: Apache-2.0
"""Progress of a long command, on standard error, only on a terminal."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from treeclaim.cli.output import is_watched
from treeclaim.cli.printing import Printer

_MOMENT = 0.5
"""Seconds after which somebody begins to wonder."""

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
    is_seen = is_watched()
    with Progress(*columns, console=Printer(stderr=True), disable=not is_seen) as bars:
        stages: dict[str, Any] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bars.add_task(stage)
            bars.update(stages[stage], completed=done, total=total)

        yield report


@contextmanager
def shown_waiting(what: str) -> Iterator[None]:
    """Show that one call is still under way, and for how long, where it takes over a moment."""
    if not is_watched():
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    spinner = Progress(*columns, console=Printer(stderr=True), transient=True)
    spinner.add_task(what, total=None)
    late = threading.Timer(_MOMENT, spinner.start)
    late.start()
    try:
        yield
    finally:
        late.cancel()
        late.join()
        spinner.stop()
