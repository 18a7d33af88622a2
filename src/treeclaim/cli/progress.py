# SPDX-License-Identifier: Apache-2.0
"""Progress of a long command, on standard error, only on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rich import progress
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeRemainingColumn,
)

from treeclaim.cli.output import is_watched
from treeclaim.cli.printing import Printer
from treeclaim.client.session import Progress


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Give a function that shows how far each stage is."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    is_seen = is_watched()
    with progress.Progress(*columns, console=Printer(stderr=True), disable=not is_seen) as bars:
        stages: dict[str, Any] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bars.add_task(stage)
            bars.update(stages[stage], completed=done, total=total)

        yield report


@contextmanager
def shown_waiting(what: str) -> Iterator[None]:
    """Show on a terminal that a call is under way."""
    with Printer(stderr=True).status(what) if is_watched() else nullcontext():
        yield
