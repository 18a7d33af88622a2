# SPDX-License-Identifier: Apache-2.0
"""Shows what was measured: a table, ratios, and which thresholds are met."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from rich.console import Console
from rich.table import Table

from bench.measuring.row import Row
from bench.reporting.thresholds import Threshold

_FAIL = "FAIL"


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


def value_of(
    threshold: Threshold, rows: Sequence[Row], ours: str, peer: str | None
) -> float | None:
    """Return what a run measured of a threshold; None where it did not."""
    row = _find(rows, threshold.case, ours)
    if row is None:
        return None
    return FIGURES[threshold.figure](row, _find(rows, threshold.case, peer))


def show(
    console: Console,
    rows: Sequence[Row],
    ours: str,
    peer: str | None,
    thresholds: Sequence[Threshold],
) -> bool:
    """Print all rows, and which thresholds are met; return whether none is missed."""
    busy = [row for row in rows if _is_busy(row)]
    quiet = [row for row in rows if not _is_busy(row)]
    console.print(_measured("The busy cloud, over HTTP", busy, ours, peer))
    if quiet:
        console.print(_measured("The quiet cloud, over HTTP", quiet, ours, peer))
    values = [value_of(threshold, rows, ours, peer) for threshold in thresholds]
    return show_thresholds(console, zip(thresholds, values, strict=True))


def _is_busy(row: Row) -> bool:
    return row.case.startswith("busy cloud")


def _measured(title: str, rows: Sequence[Row], ours: str, peer: str | None) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("case", "endpoint"):
        table.add_column(name)
    for name in (*_COLUMNS, "ratio"):
        table.add_column(name, justify="right")
    for before, row in pairwise([None, *rows]):
        assert row is not None
        other = _find(rows, row.case, peer) if row.endpoint == ours else None
        ratio = _faster(row, other) or _more_done(row, other)
        is_same = before is not None and before.case == row.case
        cells = [_figure(value(row), form) for value, form in _COLUMNS.values()]
        table.add_row(
            "" if is_same else row.case, row.endpoint, *cells, _figure(ratio, "{:.0f} x")
        )
    return table


_COLUMNS: Mapping[str, tuple[Callable[[Row], float | None], str]] = {
    "quiet ms": (lambda row: row.quiet_ms, "{:.2f}"),
    "median ms": (lambda row: row.median_ms, "{:.2f}"),
    "p95 ms": (lambda row: row.p95_ms, "{:.2f}"),
    "p99 ms": (lambda row: row.p99_ms, "{:.2f}"),
    "candidates": (lambda row: row.candidates, "{}"),
    "MB": (lambda row: _quotient(row.body_bytes, 1e6), "{:.2f}"),
    "per s": (lambda row: row.per_second, "{:.0f}"),
    "memory MB": (lambda row: _quotient(row.resident_bytes, 1e6), "{:.0f}"),
    "kB each": (lambda row: _quotient(row.bytes_each, 1e3), "{:.2f}"),
    "refused": (lambda row: row.refused or None, "{:.0f}"),
}


def show_thresholds(console: Console, values: Iterable[tuple[Threshold, float | None]]) -> bool:
    """Print thresholds with their measured figures; return whether none is missed."""
    table = Table(title="Thresholds (bench/thresholds.yaml)", title_justify="left")
    for name in ("case", "threshold", "measured", ""):
        table.add_column(name)
    is_met = True
    for threshold, value in values:
        verdict = _verdict(threshold, value)
        is_met = is_met and verdict != _FAIL
        table.add_row(threshold.case, str(threshold), _figure(value, "{:.2f}"), verdict)
    console.print(table)
    return is_met


def _verdict(threshold: Threshold, value: float | None) -> str:
    if value is not None:
        return "pass" if threshold.is_met(value) else _FAIL
    return "only with --large" if threshold.is_large else "not measured"


def _find(rows: Sequence[Row], case: str, endpoint: str | None) -> Row | None:
    return next((row for row in rows if (row.case, row.endpoint) == (case, endpoint)), None)


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
