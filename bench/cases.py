# SPDX-License-Identifier: Apache-2.0
"""The worlds that are measured, beside a peer and alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.clouds import World, flat, nested, sharing, wide

Make = Callable[[], World]

_HOSTS = 1000
_POOL_SIZE = 10_000_000


def busy_flat() -> World:
    """Return hosts and a pool, in which others claim while a client asks."""
    return _busy(world_with_pool())


def world_with_pool() -> World:
    """Return hosts, and before them a provider with room for all claims."""
    world = flat(_HOSTS + 1)
    first, *hosts = world.providers
    pool = type(first)(first.uuid, "pool", inventories={"DISK_GB": _POOL_SIZE})
    return World(f"flat {_HOSTS}", (pool, *hosts), world.query, world.limits, world.claim)


def busy_nested() -> World:
    """Return trees, in which others claim while a client asks."""
    return _busy(nested(1000))


def _busy(world: World) -> World:
    return replace(world, name=f"busy cloud, {world.name}")


BUSY_TREES: Sequence[Make] = (lambda: _busy(nested(10_000)), lambda: _busy(nested(100_000)))
"""Trees of which others claim, and of which one changes its shape; only the first without `--large`."""

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


def scaling(trees: int, copies: int) -> World:
    """Return a world of many copies of the same trees, which is quick to write."""
    world = nested(trees)
    name = f"scaling {trees * copies} x 7"
    return replace(world, name=name, limits=(10, 1000), copies=copies)


LARGE: Sequence[Make] = (lambda: flat(10_000), lambda: nested(10_000))
"""Worlds that `--large` measures beside a peer, too."""

LARGE_ALONE: Sequence[Make] = (
    lambda: nested(100_000),
    lambda: scaling(143, 1),
    lambda: scaling(1_429, 100),
)
"""Worlds that `--large` measures alone: up to a million providers."""
