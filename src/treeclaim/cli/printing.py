# SPDX-License-Identifier: Apache-2.0
"""Tables, trees, bars and progress, with every text escaped to one line.

Rich passes line breaks and control characters to the terminal. Therefore only this module creates its `Text`
and `Console`; `make lint` checks that.
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
"""Columns of a pipe or a file, which cut no lines."""

_BAR = 30
"""Characters of a bar."""

Line = Text
"""One or several lines, made by `make_line` and `join_lines`."""

StyledText = str | tuple[str, str]
"""A part of a line: its text, or text and style."""


class Printer(Console):
    """A console that escapes control characters."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape a string; rich calls this method for every string that it prints."""
        return super().render_str(one_line(text), **options)

    def on_broken_pipe(self) -> None:
        """Reraise the error; rich itself would exit with another status."""
        raise  # noqa: PLE0704 - rich calls this method in its exception handler


def make_printer() -> Printer:
    """Return a printer: as wide as the terminal; uncut and without styles elsewhere."""
    is_seen = sys.stdout.isatty()
    return Printer(
        width=None if is_seen else _WIDEST,
        color_system="auto" if is_seen else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not is_seen,
    )


def make_line(*parts: StyledText, style: str = "") -> Line:
    """Return a line of parts, each with an optional style."""
    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((one_line(text), shade) for text, shade in pairs), style=style)


def join_lines(parts: Iterable[str | Line]) -> Line:
    """Join lines with line breaks."""
    return Text("\n").join(make_line(each) if isinstance(each, str) else each for each in parts)


def format_amounts(resources: Mapping[str, int]) -> str:
    """Return amounts as text, such as `2 VCPU, 512 MEMORY_MB`."""
    return ", ".join(f"{amount} {name}" for name, amount in resources.items())


def draw_bar(part: float, total: float, *, held_part: float = 0, width: int = _BAR) -> str:
    """Return a bar for a part of a whole; even one unit fills a character.

    Held amounts are the end of the part, in another shade.
    """
    filled_width = 0 if not part else max(1, min(width, round(width * part / max(total, 1))))
    shaded_width = (
        0 if not held_part else max(1, min(filled_width, round(filled_width * held_part / part)))
    )
    return "█" * (filled_width - shaded_width) + "▒" * shaded_width + "░" * (width - filled_width)


@contextmanager
def show_progress() -> Iterator["Progress"]:
    """Show progress on a terminal; yield the function that reports it."""
    # Slow to import; most commands need no progress.
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

        def report(stage: str, done_count: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bars.add_task(stage)
            bars.update(stages[stage], completed=done_count, total=total)

        yield report


@contextmanager
def show_waiting(text: str) -> Iterator[None]:
    """Show a text on a terminal while a call runs."""
    with Printer(stderr=True).status(text) if sys.stderr.isatty() else nullcontext():
        yield
