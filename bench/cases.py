# SPDX-License-Identifier: Apache-2.0
"""What is measured: worlds by size, against a peer and alone."""

from collections.abc import Callable, Sequence

from bench.hardware import busy, generations, hostile, telco
from bench.worlds import World, flat, nested, sharing, wide

Make = Callable[[], World]

SHORT: Sequence[Make] = (
    lambda: flat(1000),
    lambda: nested(1000),
    lambda: sharing(1000),
    lambda: wide(2, 8, 4, units=4),
)
"""Worlds that are measured against a peer."""

SHORT_ALONE: Sequence[Make] = (
    lambda: flat(10_000),
    lambda: wide(2, 64, 64),
    lambda: wide(2, 63, 64),
)
"""Worlds that no peer finishes in reasonable time."""

FULL: Sequence[Make] = (
    *SHORT,
    lambda: busy(1000),
    lambda: generations(1000),
    lambda: telco(500),
    lambda: flat(10_000),
    lambda: nested(10_000),
)

FULL_ALONE: Sequence[Make] = (
    *SHORT_ALONE[1:],
    lambda: busy(10_000),
    lambda: generations(10_000),
    lambda: telco(10_000),
    lambda: sharing(10_000),
    lambda: wide(2, 16, 5, limits=(None,)),
    *(lambda number=number: hostile(1000)[number] for number in range(len(hostile(1)))),
    lambda: flat(100_000),
    lambda: nested(100_000),
)

SCALING: Sequence[int] = (300, 1_000, 3_000, 10_000, 30_000, 100_000)
"""Numbers of trees of the log-log plot."""
