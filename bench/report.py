# SPDX-License-Identifier: Apache-2.0
"""Shows what was measured: a table, ratios, and which floors are reached."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from rich.console import Console
from rich.table import Table

from bench.measure import Row


@dataclass(frozen=True, slots=True)
class Floor:
    """What must be reached.

    Attributes:
        case: Of the rows it is about.
        text: In words.
        value: Computes the figure from our row and the peer's (None without a peer).
        reached: Judges the figure.
    """

    case: str
    text: str
    value: Callable[[Row, Row | None], float | None]
    reached: Callable[[float], bool]


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


FLOORS = (
    *(
        Floor(f"{world}, {limit}", f"{factor} x faster", _faster, partial(operator.le, factor))
        for world, limit, factor in (
            ("flat 1000", "no limit", 75),
            ("flat 1000", "limit=10", 100),
            ("nested 1000 x 7", "no limit", 150),
            ("nested 1000 x 7", "limit=10", 100),
            ("sharing 1000", "no limit", 150),
            ("flat 10000", "limit=10", 300),
            ("flat 10000", "limit=1000", 300),
            ("nested 10000 x 7", "limit=10", 300),
            ("nested 10000 x 7", "limit=1000", 300),
        )
    ),
    Floor("flat 10000, no limit", "< 1 x orjson", _times_orjson, lambda one: one < 1),
    Floor("nested 100000 x 7, limit=1000", "< 50 ms", _milliseconds, lambda one: one < 50),
    Floor("wide 2 x 64, 64 groups, limit=1000", "< 30 ms", _milliseconds, lambda one: one < 30),
    Floor("wide 2 x 63, 64 groups, limit=1000", "< 3 ms", _milliseconds, lambda one: one < 3),
    Floor("flat 1000: claims, 1 client", "5 x the claims", _more_done, lambda one: one >= 5),
    Floor(
        "flat 1000: search and claim, 16 clients",
        "10 x the pairs",
        _more_done,
        lambda one: one >= 10,
    ),
    Floor("flat 1000: refreshes of a host", "20 x as many", _more_done, lambda one: one >= 20),
    Floor(
        "nested 1000 x 7: refreshes of a host", "20 x as many", _more_done, lambda one: one >= 20
    ),
    *(
        Floor(f"flat 1000: {name}", "10 x as many", _more_done, lambda one: one >= 10)
        for name in (
            "list of all providers",
            "list by name",
            "show provider",
            "inventories",
            "usages",
            "allocations",
        )
    ),
)


def show(console: Console, rows: Sequence[Row], ours: str, peer: str | None) -> None:
    """Print all rows, and the floors."""
    console.print(_measured(rows, ours, peer))
    console.print(_floors(rows, ours, peer))


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


def _floors(rows: Sequence[Row], ours: str, peer: str | None) -> Table:
    table = Table(title="Floors", title_justify="left")
    for name in ("case", "floor", "measured", "reached"):
        table.add_column(name)
    for floor in FLOORS:
        row = _find(rows, floor.case, ours)
        value = None if row is None else floor.value(row, _find(rows, floor.case, peer))
        verdict = "not measured" if value is None else "yes" if floor.reached(value) else "NO"
        table.add_row(floor.case, floor.text, _figure(value, "{:.1f}"), verdict)
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
