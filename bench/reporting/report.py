# SPDX-License-Identifier: Apache-2.0
"""Shows what was measured: a table with ratios, and which thresholds are met."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from bench.measuring.row import Comparison, Row
from bench.reporting.thresholds import Threshold


def _quotient(dividend: float | None, divisor: float | None) -> float | None:
    return dividend / divisor if dividend and divisor else None


def _faster(ours: Row, peer: Row | None) -> float | None:
    return None if peer is None else _quotient(peer.median_ms, ours.median_ms)


def _more_done(ours: Row, peer: Row | None) -> float | None:
    return None if peer is None else _quotient(ours.per_second, peer.per_second)


FIGURES: Mapping[str, Callable[[Row, Row | None], float | None]] = {
    "times as fast": _faster,
    "times as many": _more_done,
    "milliseconds": lambda ours, _: ours.median_ms,
    "times orjson": lambda ours, _: _quotient(ours.median_ms, ours.orjson_ms),
    "times the quiet one": lambda ours, _: _quotient(ours.median_ms, ours.quiet_ms),
    "milliseconds (p99)": lambda ours, _: ours.p99_ms,
    "a second": lambda ours, _: ours.per_second,
    "seconds": lambda ours, _: _quotient(ours.median_ms, 1000),
    "MiB": lambda ours, _: _quotient(ours.resident_bytes, 2**20),
    "kB for each provider": lambda ours, _: _quotient(ours.bytes_each, 1000),
    "times alone": lambda ours, _: _quotient(ours.median_ms, ours.alone_ms),
}
"""Functions that compute a figure from our row and the peer's (None without a peer)."""


def value_of(threshold: Threshold, comparisons: Sequence[Comparison]) -> float | None:
    """Return what a run measured of a threshold; None where it did not."""
    for comparison in comparisons:
        if comparison.ours.case == threshold.case:
            return FIGURES[threshold.figure](comparison.ours, comparison.other)
    return None


def show(
    console: Console, comparisons: Sequence[Comparison], thresholds: Sequence[Threshold]
) -> bool:
    """Print what was measured, and which thresholds are met; return whether none is missed."""
    table = Table(title="Measured over HTTP", title_justify="left")
    for name in ("case", "ours", "p99", "beside", "ratio", "the other one is"):
        table.add_column(name)
    for comparison in comparisons:
        ours, other = comparison.ours, comparison.other
        ratio = _faster(ours, other) or _more_done(ours, other)
        p99 = "" if ours.p99_ms is None else f"{ours.p99_ms:,.1f} ms"
        beside = ("", "", comparison.note)
        if other is not None:
            words = filter(None, (other.endpoint, comparison.note))
            beside = (other.speed, _figure(ratio, "{:,.1f} x"), ": ".join(words))
        table.add_row(ours.case, ours.speed, p99, *beside)
    console.print(table)
    return _show_thresholds(console, comparisons, thresholds)


def _show_thresholds(
    console: Console, comparisons: Sequence[Comparison], thresholds: Sequence[Threshold]
) -> bool:
    table = Table(title="Thresholds (bench/thresholds.yaml)", title_justify="left")
    for name in ("case", "threshold", "measured", ""):
        table.add_column(name)
    is_met = True
    for threshold in thresholds:
        value = value_of(threshold, comparisons)
        if value is None:
            verdict = "only with --large" if threshold.is_large else "not measured"
        else:
            verdict = "pass" if threshold.is_met(value) else "FAIL"
        is_met = is_met and verdict != "FAIL"
        table.add_row(threshold.case, str(threshold), _figure(value, "{:.2f}"), verdict)
    console.print(table)
    return is_met


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
