# SPDX-License-Identifier: Apache-2.0
"""Shows what was measured: a table, ratios, and which thresholds are met."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from rich.console import Console
from rich.table import Table

from bench.measure import Row
from bench.thresholds import Threshold


def _faster(ours: Row, peer: Row | None) -> float | None:
    if peer is None or not peer.median_ms or not ours.median_ms:
        return None
    return peer.median_ms / ours.median_ms


def _more_done(ours: Row, peer: Row | None) -> float | None:
    if peer is None or not peer.per_second or not ours.per_second:
        return None
    return ours.per_second / peer.per_second


def _milliseconds(ours: Row, _peer: Row | None) -> float | None:
    return ours.median_ms


def _times_orjson(ours: Row, _peer: Row | None) -> float | None:
    if not ours.orjson_ms or not ours.median_ms:
        return None
    return ours.median_ms / ours.orjson_ms


FIGURES: Mapping[str, Callable[[Row, Row | None], float | None]] = {
    "times as fast": _faster,
    "times as many": _more_done,
    "milliseconds": _milliseconds,
    "times orjson": _times_orjson,
}
"""How each figure of a threshold is computed from our row and the peer's (None without a peer)."""


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
    values = [value_of(threshold, rows, ours, peer) for threshold in thresholds]
    console.print(_measured(rows, ours, peer))
    console.print(_judged(thresholds, values))
    return all(
        value is None or threshold.is_met(value)
        for threshold, value in zip(thresholds, values, strict=True)
    )


def _measured(rows: Sequence[Row], ours: str, peer: str | None) -> Table:
    table = Table(title="Measured over HTTP", title_justify="left")
    columns = (
        "case",
        "endpoint",
        "median ms",
        "p95 ms",
        "candidates",
        "MB",
        "cand./s",
        "per s",
    )
    for name in (*columns, "ratio"):
        table.add_column(name, justify="left" if name in columns[:2] else "right")
    for before, row in pairwise([None, *rows]):
        assert row is not None
        other = _find(rows, row.case, peer) if row.endpoint == ours else None
        ratio = _faster(row, other) or _more_done(row, other)
        table.add_row(
            "" if before is not None and before.case == row.case else row.case,
            row.endpoint,
            _figure(row.median_ms, "{:.2f}"),
            _figure(row.p95_ms, "{:.2f}"),
            _figure(row.candidates, "{}"),
            _figure(None if row.body_bytes is None else row.body_bytes / 1e6, "{:.2f}"),
            _figure(row.candidates_per_second, "{:,.0f}"),
            _figure(row.per_second, "{:.0f}"),
            _figure(ratio, "{:.0f} x"),
        )
    return table


def _judged(thresholds: Sequence[Threshold], values: Sequence[float | None]) -> Table:
    table = Table(title="Thresholds (bench/thresholds.yaml)", title_justify="left")
    for name in ("case", "threshold", "observed before", "measured", ""):
        table.add_column(name)
    for threshold, value in zip(thresholds, values, strict=True):
        met = "not measured" if value is None else "pass" if threshold.is_met(value) else "FAIL"
        observed = str(threshold.observed or "")
        table.add_row(threshold.case, str(threshold), observed, _figure(value, "{:.1f}"), met)
    return table


def _find(rows: Sequence[Row], case: str, endpoint: str | None) -> Row | None:
    return next((one for one in rows if (one.case, one.endpoint) == (case, endpoint)), None)


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def markdown(rows: Sequence[Row], ours: str, peer: str | None) -> str:
    """Return the figures side by side as a Markdown table."""
    lines = [
        f"| case | MB | {ours} | {peer or 'peer'} | ratio |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        if row.endpoint != ours:
            continue
        other = _find(rows, row.case, peer)
        ratio = _faster(row, other) or _more_done(row, other)
        size = None if row.body_bytes is None else row.body_bytes / 1e6
        cells = (
            row.case,
            _figure(size, "{:.2f}"),
            _speed(row),
            "" if other is None else _speed(other),
            _figure(ratio, "{:.0f} x"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _speed(row: Row) -> str:
    if row.per_second is not None:
        return f"{row.per_second:.0f}/s"
    return _figure(row.median_ms, "{:.2f} ms")
