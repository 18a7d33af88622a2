# SPDX-License-Identifier: Apache-2.0
"""Measurements beside each other, as tables, with their thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bench.clients.endpoint import OURS
from bench.measuring.row import Row
from bench.reporting import thresholds
from bench.reporting.report import FIGURES


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


def show(found: Sequence[Comparison], console: Console) -> bool:
    """Print what was measured, and whether it keeps its thresholds; return whether all do."""
    table = Table(title="Placing, measured over HTTP", title_justify="left")
    for title in ("case", OURS, "beside", "ratio", "the other one is"):
        table.add_column(title)
    for row in found:
        table.add_row(row.ours.case, speed(row.ours), speed(row.other), *_ratio(row))
    console.print(table)
    judged = Table(title="Thresholds (bench/thresholds.yaml)", title_justify="left")
    for title in ("case", "threshold", "measured", ""):
        judged.add_column(title)
    results = []
    for row in found:
        for bound in (bound for bound in thresholds.read() if bound.case == row.ours.case):
            value = FIGURES[bound.figure](row.ours, row.other)
            if value is None:
                continue
            results.append(bound.is_met(value))
            verdict = "pass" if results[-1] else "FAIL"
            judged.add_row(bound.case, str(bound), f"{value:.2f}", verdict)
    console.print(judged)
    return all(results)


def speed(row: Row | None) -> str:
    """Return a rate, or else a latency, in words; nothing for no row."""
    if row is None:
        return ""
    if row.per_second is not None:
        return f"{row.per_second:.0f}/s"
    return f"{row.median_ms:,.1f} ms"


def _ratio(one: Comparison) -> tuple[str, str]:
    figure = "times as many" if one.ours.per_second is not None else "times as fast"
    value = FIGURES[figure](one.ours, one.other)
    name = "" if one.other is None else one.other.endpoint
    note = f"{name}: {one.note}" if one.note else name
    return "" if value is None else f"{value:,.1f} x", note
