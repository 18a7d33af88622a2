# SPDX-License-Identifier: Apache-2.0
"""The domains of a rule: which trees are in them, and how many consumers (page 98, section 4).

Trees that are in the same domains are alike to a rule, so it judges *kinds* of trees: one for each
set of domains that some tree is in. Where every tree is a domain, each is a kind of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.candidate import no_trees
from treeclaim.forest.table.columns import Integers, Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import sums_by


class Domains(ABC):
    """Kinds of domains.

    Attributes:
        count: How many.
        kind: The kind of each tree, by its number, int64, shape (roots,).
        kinds: The domains of each kind, ascending.
    """

    count: int
    kind: Rows
    kinds: Sequence[tuple[int, ...]]

    def containing(self, trees: Iterable[int]) -> tuple[int, ...]:
        """Return the domains that some trees are in, ascending."""
        domains = {domain for tree in trees for domain in self.kinds[int(self.kind[tree])]}
        return tuple(sorted(domains))

    @cached_property
    def in_some(self) -> Mask:
        """Tell for each kind whether it is in any domain."""
        return np.array([bool(domains) for domains in self.kinds], dtype=np.bool_)

    @cached_property
    def sizes(self) -> Rows:
        """Return how many domains each kind is in."""
        return np.array([len(domains) for domains in self.kinds], dtype=np.int64)

    @cached_property
    def with_domain(self) -> Sequence[Sequence[int]]:
        """Return the kinds that are in each domain."""
        kinds: list[list[int]] = [[] for _ in range(self.count)]
        for kind, domains in enumerate(self.kinds):
            for domain in domains:
                kinds[domain].append(kind)
        return kinds

    @cached_property
    def _members(self) -> tuple[Rows, Rows]:
        """Return all pairs of a kind and a domain that it is in."""
        kinds = np.arange(len(self.kinds)).repeat(self.sizes)
        domains = [domain for kind in self.kinds for domain in kind]
        return kinds, np.array(domains, dtype=np.int64)

    def with_any(self, some: Mask) -> Mask:
        """Tell which trees are in any of some domains."""
        kinds, domains = self._members
        is_kind = np.zeros(len(self.kinds), dtype=np.bool_)
        is_kind[kinds[some[domains]]] = True
        return is_kind[self.kind]

    def summed(self, by_tree: Integers) -> Integers:
        """Return for each domain the sum of a number for each tree in it, at most `GREATEST`."""
        kinds, domains = self._members
        return sums_by(domains, sums_by(self.kind, by_tree, len(self.kinds))[kinds], self.count)

    @abstractmethod
    def fit(self, counts: Rows, most: int, emptiest: "Emptiest | None") -> Mask:
        """Tell for each kind whether one more consumer there keeps the rule.

        Args:
            counts: Consumers of each domain.
            most: How many a domain may have: beyond the emptiest one, if that is given.
            emptiest: Tells how many the emptiest one has then.
        """

    @abstractmethod
    def close(self, domain: int, mask: Mask) -> None:
        """Take the trees of a domain out of a mask over trees."""

    @abstractmethod
    def order(self, forest: Forest, domains: Collection[int]) -> list[int]:
        """Return some domains of one candidate in the order in which they are tried."""


class Emptiest:
    """Return the number of consumers in the emptiest domain that had a candidate."""

    def __init__(self, counts: Rows, eligible: Mask) -> None:
        """Take the consumers of each domain, and which of these count."""
        some = counts[eligible]
        self.now = int(some.min()) if len(some) else 0
        self._only = np.flatnonzero(eligible & (counts == self.now)) if len(some) else some

    def after(self, domains: Collection[int]) -> int:
        """Return how many it has after one more consumer in some domains."""
        if len(self._only) > len(domains) or not set(self._only.tolist()) <= set(domains):
            return self.now
        # What else is there has at least one more, and those that had least have just one more.
        return self.now + 1 if len(self._only) else self.now


class TreeDomains(Domains):
    """Every tree is a domain."""

    def __init__(self, forest: Forest) -> None:
        """Number the domains as the trees."""
        self.count = len(forest.order.roots)
        self.kind = np.arange(self.count)
        self.kinds = [(tree,) for tree in range(self.count)]

    def fit(self, counts: Rows, most: int, emptiest: Emptiest | None) -> Mask:
        """Judge all trees at once: the emptiest one that gets more is still no emptier."""
        least = 0 if emptiest is None else emptiest.now
        fits: Mask = counts + 1 <= most + least
        return fits

    def close(self, domain: int, mask: Mask) -> None:
        """Take one tree out of a mask."""
        mask[domain] = False

    def order(self, forest: Forest, domains: Collection[int]) -> list[int]:
        """Return trees by the uuids of their roots."""
        order = forest.order
        return sorted(domains, key=lambda tree: forest.uuid_of(int(order.row[order.roots[tree]])))


class AggregateDomains(Domains):
    """Aggregates, each of which holds the trees whose roots are in it."""

    def __init__(self, forest: Forest, aggregates: Sequence[str], budget: Budget) -> None:
        """Number the domains as the aggregates, given by uuid; there may be none with it."""
        order = forest.order
        self.count = len(aggregates)
        sets: dict[int, list[int]] = {}
        for domain, aggregate in enumerate(aggregates):
            budget.check()
            positions = order.position[forest.rows_in_aggregate(aggregate)]
            for tree in order.tree[positions[order.root[positions] == positions]].tolist():
                sets.setdefault(tree, []).append(domain)
        numbers: dict[tuple[int, ...], int] = {(): 0}
        self.kind = no_trees(forest).astype(np.int64)
        for tree, domains in sets.items():
            self.kind[tree] = numbers.setdefault(tuple(domains), len(numbers))
        self.kinds = list(numbers)
        self._are_apart = all(len(domains) <= 1 for domains in self.kinds)
        self._alone = np.array([domains[0] if domains else -1 for domains in self.kinds])

    def fit(self, counts: Rows, most: int, emptiest: Emptiest | None) -> Mask:
        """Judge all kinds at once where domains do not overlap, else one after the other."""
        if not self._are_apart:
            return np.array([keeps(kind, counts, most, emptiest) for kind in self.kinds])
        least = 0 if emptiest is None else emptiest.now
        fits: Mask = (self._alone >= 0) & (counts[self._alone] + 1 <= most + least)
        return fits

    def close(self, domain: int, mask: Mask) -> None:
        """Take all trees of an aggregate out of a mask, whatever else they are in."""
        closed = np.array([domain in kind for kind in self.kinds], dtype=np.bool_)
        mask[closed[self.kind]] = False

    def order(self, forest: Forest, domains: Collection[int]) -> list[int]:
        """Return aggregates in the order in which the rule names them."""
        del forest
        return sorted(domains)


def keeps(domains: Collection[int], counts: Rows, most: int, emptiest: Emptiest | None) -> bool:
    """Tell whether one more consumer in some domains, all of them, keeps a rule."""
    if not domains:
        return False
    least = 0 if emptiest is None else emptiest.after(domains)
    return all(int(counts[domain]) + 1 <= most + least for domain in domains)
