# SPDX-License-Identifier: Apache-2.0
"""Measurements beside each other, as tables, with their thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bench.clients.endpoint import OURS
from bench.measuring.row import Row
from bench.reporting import thresholds
from bench.reporting.report import FIGURES, show_thresholds


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure of ours beside another one.

    Attributes:
        ours: What was measured.
        other: What it is compared with; None where there is no peer.
        note: How the other one came about.
    """

    ours: Row
    other: Row | None = None
    note: str = ""

    def in_words(self) -> str:
        """Return the figures in a line."""
        cells = (self.ours.case, speed(self.ours), speed(self.other), *_ratio(self))
        return "  ".join(filter(None, cells))


def show(comparisons: Sequence[Comparison], console: Console) -> bool:
    """Print what was measured, and whether it keeps its thresholds; return whether all do."""
    table = Table(title="Placing, measured over HTTP", title_justify="left")
    for title in ("case", OURS, "beside", "ratio", "the other one is"):
        table.add_column(title)
    for comparison in comparisons:
        table.add_row(
            comparison.ours.case,
            speed(comparison.ours),
            speed(comparison.other),
            *_ratio(comparison),
        )
    console.print(table)
    known = thresholds.read()
    return show_thresholds(
        console,
        (
            (threshold, FIGURES[threshold.figure](comparison.ours, comparison.other))
            for comparison in comparisons
            for threshold in known
            if threshold.case == comparison.ours.case
        ),
    )


def speed(row: Row | None) -> str:
    """Return a rate, or else a latency, in words; nothing for no row."""
    if row is None:
        return ""
    if row.per_second is not None:
        return f"{row.per_second:.0f}/s"
    return f"{row.median_ms:,.1f} ms"


def _ratio(comparison: Comparison) -> tuple[str, str]:
    figure = "times as many" if comparison.ours.per_second is not None else "times as fast"
    value = FIGURES[figure](comparison.ours, comparison.other)
    name = "" if comparison.other is None else comparison.other.endpoint
    note = f"{name}: {comparison.note}" if comparison.note else name
    return "" if value is None else f"{value:,.1f} x", note
