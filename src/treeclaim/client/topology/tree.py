# SPDX-License-Identifier: Apache-2.0
"""Order, cycles and descendants of providers, in time that is linear in their number.

Walking up to the root from each provider would take a day for a chain of 200,000.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple


class TreePlace(NamedTuple):
    """The place of a provider: the root of its tree, and the number of its ancestors."""

    root: str
    depth: int


def order_trees(parents: Mapping[str, str | None]) -> dict[str, TreePlace]:
    """Return the places of providers, parents before children; without those in or below a cycle.

    Args:
        parents: The parent of each provider; one without an entry of its own does not count.
    """
    children: defaultdict[str | None, list[str]] = defaultdict(list)
    for name, parent in parents.items():
        children[parent if parent in parents else None].append(name)
    places = {name: TreePlace(name, 0) for name in children[None]}
    queue = list(places)
    for name in queue:
        root, depth = places[name]
        queue += children[name]
        places |= dict.fromkeys(children[name], TreePlace(root, depth + 1))
    return places


def find_cycles(parents: Mapping[str, str | None]) -> set[str | None]:
    """Return the providers that are their own ancestors."""
    circular: set[str | None] = set(parents.keys() - order_trees(parents).keys())
    counts = Counter(parents[name] for name in parents if name in circular)
    leaves = [name for name in parents if name in circular and not counts[name]]
    for name in leaves:
        circular.discard(name)
        parent = parents[name]
        counts[parent] -= 1
        if parent is not None and not counts[parent]:
            leaves.append(parent)
    return circular


def find_descendants(parents: Mapping[str, str | None], ancestors: Collection[str]) -> set[str]:
    """Return all providers below one of the ancestors, in trees without a cycle."""
    below: set[str | None] = set()
    for name in order_trees(parents):
        if parents[name] in below or parents[name] in ancestors:
            below.add(name)
    return {name for name in below if name is not None}
