# SPDX-License-Identifier: Apache-2.0
"""Cycles, depths and descendants of providers, in time that is linear in their number.

Walking up to the root from each provider would take a day for a chain of 200,000.
"""

from collections.abc import Collection, Iterator, Mapping


def find_cycles(parents: Mapping[str, str | None]) -> set[str]:
    """Return the providers that are their own ancestors.

    Args:
        parents: The parent of each provider; a parent need not have an entry of its own.
    """
    circular: set[str] = set()
    for path, last in _paths(parents):
        if last in path:
            circular.update(path[path.index(last) :])
    return circular


def count_ancestors(parents: Mapping[str, str | None]) -> dict[str, int]:
    """Return the number of ancestors of each provider; 0 in or below a cycle."""
    depth_by_name: dict[str, int | None] = {}
    for path, last in _paths(parents):
        if last in path:
            depth_by_name.update(dict.fromkeys(path, None))
            continue
        above = -1 if last is None else depth_by_name[last]
        for name in reversed(path):
            above = None if above is None else above + 1
            depth_by_name[name] = above
    return {name: depth or 0 for name, depth in depth_by_name.items()}


def find_roots(parents: Mapping[str, str | None]) -> dict[str, str]:
    """Return the root of each provider; in or below a cycle, some provider of the cycle."""
    roots: dict[str, str] = {}
    for path, last in _paths(parents):
        root = roots.get(last or path[-1], path[-1])
        roots.update(dict.fromkeys(path, root))
    return roots


def find_descendants(parents: Mapping[str, str | None], ancestors: Collection[str]) -> set[str]:
    """Return all providers below one of the ancestors."""
    below: dict[str, bool] = {}
    for path, last in _paths(parents):
        cycle = path[path.index(last) :] if last in path else ()
        is_below = any(name in ancestors for name in cycle) or below.get(last or "", False)
        for name in reversed(path):
            is_below = is_below or parents.get(name) in ancestors
            below[name] = is_below
    return {name for name, is_below in below.items() if is_below}


def _paths(parents: Mapping[str, str | None]) -> Iterator[tuple[list[str], str | None]]:
    """Divide all providers into paths upwards, none twice.

    Yields:
        A path, and the provider above its end: one of an earlier path, one of this path (a cycle), or None.
    """
    visited: set[str] = set()
    for start in parents:
        path: list[str] = []
        name: str | None = start
        while name is not None and name not in visited:
            visited.add(name)
            path.append(name)
            name = parents.get(name)
        if path:
            yield path, name
