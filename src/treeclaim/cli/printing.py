# SPDX-License-Identifier: Apache-2.0
"""Prints tables, trees, bars and progress; each text is one line.

Rich keeps line breaks in texts, and passes control characters to the terminal. Therefore no other module
creates its `Text` or `Console` (`make lint` checks that), and plain strings are made safe here.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from treeclaim.model.names import one_line

if TYPE_CHECKING:
    from treeclaim.client.session import Progress

_WIDEST = 1_000_000
"""Columns of a pipe or a file: lines are not cut there."""

_BAR = 30
"""Characters of a bar."""

Line = Text
"""A line or several lines, made by `line` and `lines`."""

Part = str | tuple[str, str]
"""A part of a line: its text, or text and style."""


class Printer(Console):
    """Prints what can be read."""

    def render_str(self, text: str, **how: Any) -> Text:
        """Make a text of a string; rich calls this method for all that it prints."""
        return super().render_str(one_line(text), **how)

    def on_broken_pipe(self) -> None:
        """Raise the error, with which the program ends: rich itself would end it with another status."""
        raise  # noqa: PLE0704 - rich calls this where it handles the error


def printer() -> Printer:
    """Return what prints tables and trees: as wide as the terminal, uncut and plain elsewhere."""
    is_seen = sys.stdout.isatty()
    return Printer(
        width=None if is_seen else _WIDEST,
        color_system="auto" if is_seen else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not is_seen,
    )


def line(*parts: Part, style: str = "") -> Line:
    """Return a line of parts, each of which may have a style of its own."""
    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((one_line(text), shade) for text, shade in pairs), style=style)


def lines(parts: Iterable[str | Line]) -> Line:
    """Return lines below each other."""
    return Text("\n").join(line(each) if isinstance(each, str) else each for each in parts)


def amounts_in_words(resources: Mapping[str, int]) -> str:
    """Return amounts, such as `2 VCPU, 512 MEMORY_MB`."""
    return ", ".join(f"{amount} {name}" for name, amount in resources.items())


def bar(part: float, whole: float, *, held: float = 0, width: int = _BAR) -> str:
    """Return a bar that is as full as a part is of a whole; it shows from the first unit.

    Held amounts of the part are drawn last, in another style.
    """
    filled = 0 if not part else max(1, min(width, round(width * part / max(whole, 1))))
    kept = 0 if not held else max(1, min(filled, round(filled * held / part)))
    return "█" * (filled - kept) + "▒" * kept + "░" * (width - filled)


@contextmanager
def shown_progress() -> Iterator["Progress"]:
    """Show progress during a block; yield a function that reports the progress of a stage."""
    # Slow to import, and only some commands take long.
    from rich import progress  # noqa: PLC0415

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
    )
    is_seen = sys.stderr.isatty()
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
    with Printer(stderr=True).status(what) if sys.stderr.isatty() else nullcontext():
        yield
