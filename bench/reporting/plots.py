# SPDX-License-Identifier: Apache-2.0
"""Plots of what was measured, as SVG."""

import re
from collections.abc import Sequence
from pathlib import Path

from bench.measuring.row import Row

_SIZED = re.compile(r"scaling (\d+) x 7, limit=(\d+)(, new questions)?")


def draw(rows: Sequence[Row], ours: str, peer: str | None, folder: Path) -> None:
    """Draw latency by size, and the factor over a peer, as far as there are figures for them."""
    # Matplotlib takes a second to import, and most runs draw nothing.
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    # The same figures give the same file.
    mpl.rcParams["svg.hashsalt"] = "treeclaim"
    mpl.rcParams["font.size"] = 9
    folder.mkdir(parents=True, exist_ok=True)
    _draw_sizes(rows, folder / "sizes.svg")
    if peer is not None:
        _draw_factors(rows, ours, peer, folder / "factors.svg")


def _draw_sizes(rows: Sequence[Row], path: Path) -> None:
    """Draw the median latency over the number of trees, both logarithmic."""
    from matplotlib import pyplot as plt  # noqa: PLC0415

    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        match = _SIZED.fullmatch(row.case)
        if match and row.median_ms is not None:
            name = f"limit={match[2]}{match[3] or ', same question'}"
            lines.setdefault(name, []).append((int(match[1]), row.median_ms))
    if not lines:
        return
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    for name, points in lines.items():
        sizes, times = zip(*sorted(points), strict=True)
        axes.loglog(sizes, times, marker="o", label=name)
    axes.set_xlabel("trees of seven providers")
    axes.set_ylabel("median over HTTP, ms")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    _save(figure, path)


def _draw_factors(rows: Sequence[Row], ours: str, peer: str, path: Path) -> None:
    """Draw how many times faster each case is than at the peer."""
    from matplotlib import pyplot as plt  # noqa: PLC0415

    theirs = {row.case: row for row in rows if row.endpoint == peer}
    factors = []
    for row in rows:
        other = theirs.get(row.case)
        if row.endpoint != ours or other is None:
            continue
        if row.median_ms and other.median_ms:
            factors.append((row.case, other.median_ms / row.median_ms))
        elif row.per_second and other.per_second:
            factors.append((row.case, row.per_second / other.per_second))
    if not factors:
        return
    figure, axes = plt.subplots(figsize=(7.2, 0.22 * len(factors) + 1))
    names, values = zip(*reversed(factors), strict=True)
    bars = axes.barh(names, values)
    axes.bar_label(bars, fmt="%.0f", padding=2)
    axes.set_xscale("log")
    axes.set_xlabel(f"times as fast as {peer}")
    _save(figure, path)


def _save(figure: object, path: Path) -> None:
    figure.tight_layout()  # type: ignore[attr-defined]
    figure.savefig(path, metadata={"Date": None})  # type: ignore[attr-defined]
