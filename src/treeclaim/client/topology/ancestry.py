# SPDX-License-Identifier: Apache-2.0
"""Who is above whom: circles, depths and descendants, each in time that grows with the providers.

To walk up to the root from each provider would take a day for a chain of 200,000.
"""

from collections.abc import Collection, Iterator, Mapping


def circles(parents: Mapping[str, str | None]) -> set[str]:
    """Return those that are their own ancestors.

    Args:
        parents: The parent of each; a parent need not have an entry of its own.
    """
    circular: set[str] = set()
    for path, last in _paths(parents):
        if last in path:
            circular.update(path[path.index(last) :])
    return circular


def depths(parents: Mapping[str, str | None]) -> dict[str, int]:
    """Return how many are above each; 0 for those in or below a circle."""
    known: dict[str, int | None] = {}
    for path, last in _paths(parents):
        if last in path:
            known.update(dict.fromkeys(path, None))
            continue
        above = -1 if last is None else known[last]
        for name in reversed(path):
            above = None if above is None else above + 1
            known[name] = above
    return {name: depth or 0 for name, depth in known.items()}


def descendants(parents: Mapping[str, str | None], those: Collection[str]) -> set[str]:
    """Return all that are somewhere below one of those."""
    below: dict[str, bool] = {}
    for path, last in _paths(parents):
        circle = path[path.index(last) :] if last in path else ()
        is_below = any(name in those for name in circle) or below.get(last or "", False)
        for name in reversed(path):
            above = parents.get(name)
            is_below = is_below or above in those
            below[name] = is_below
    return {name for name, is_below in below.items() if is_below}


def _paths(parents: Mapping[str, str | None]) -> Iterator[tuple[list[str], str | None]]:
    """Divide all into paths upwards, none twice.

    Yields:
        A path, and what is above its end: an entry of an earlier path, of this one (a circle), or
        nothing.
    """
    seen: set[str] = set()
    for start in parents:
        path: list[str] = []
        name: str | None = start
        while name is not None and name not in seen:
            seen.add(name)
            path.append(name)
            name = parents.get(name)
        if path:
            yield path, name
