# SPDX-License-Identifier: Apache-2.0
"""What is measured: worlds by size, against a peer and alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from bench.contention import world_with_pool
from tests.clouds import World, flat, nested, sharing, wide
from tests.clouds.hardware import busy, generations, hostile, telco

Make = Callable[[], World]


def busy_flat() -> World:
    """Return hosts and a pool, in which others claim while a client asks."""
    return _busy(world_with_pool())


def busy_nested() -> World:
    """Return trees, in which others claim while a client asks."""
    return _busy(nested(1000))


def _busy(world: World) -> World:
    return replace(world, name=f"busy cloud, {world.name}")


BUSY_TREES: Sequence[Make] = (lambda: _busy(nested(10_000)), lambda: _busy(nested(100_000)))
"""Trees of which others claim, and of which one changes its shape; the first alone in a short run."""

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


def scaling(trees: int, copies: int) -> World:
    """Return a world for the plot of sizes, and for how long loading takes."""
    world = nested(trees)
    name = f"scaling {trees * copies} x 7"
    return replace(world, name=name, limits=(10, 1000), copies=copies)


SCALING: Sequence[Make] = tuple(
    partial(scaling, trees, copies)
    for trees, copies in ((143, 1), (1_429, 1), (1_429, 10), (1_429, 100))
)
"""A thousand to a million providers."""
