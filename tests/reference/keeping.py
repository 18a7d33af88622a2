# SPDX-License-Identifier: Apache-2.0
"""`keep` and stranded amounts by brute force: contract page 101, section 3, line by line, in fractions."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from tests.reference.candidates import SHARING, Reference
from tests.reference.counts import count_in_tree
from tests.reference.placing import take_candidate
from tests.reference.scores import Scores
from tests.reference.world import Request, World


@dataclass(frozen=True)
class Mix:
    """Requests with their weights."""

    requests: tuple[tuple[Request, int], ...]


class KeepScores(Scores):
    """Scores that know mixes."""

    def __init__(self, world, request, mixes):
        super().__init__(Reference(world), request)
        self.world = world
        self.mixes = mixes
        self.counts_by_key = {}

    def count(self, world, request, tree):
        """The count of a request in a tree (contract page 101, definitions)."""
        key = str(world), repr(request), tree
        if key not in self.counts_by_key:
            self.counts_by_key[key] = count_in_tree(world, request, tree)
        return self.counts_by_key[key]

    def size(self, tree, c):
        """The capacity of a class in a tree."""
        return sum(
            self.reference.capacity(p, c)
            for p, provider in self.reference.P.items()
            if c in provider.stock and self.reference.root(p) == tree
        )

    def empty(self, request, tree):
        """Return how many consumers would fit if nothing were allocated."""
        return self.count(emptied(self.world), request, tree)

    def share(self, request, weight, tree, c):
        """w(m) · size(T) / room(m), for a request that the tree has room for when it is empty."""
        room = sum(
            self.size(root, c) for root in self.reference.roots if self.empty(request, root) > 0
        )
        return Fraction(weight * self.size(tree, c), room) if room else Fraction(0)

    def keep(self, args, candidate):
        """Return one minus the loss over K."""
        name, c = args
        requests = self.mixes[name].requests
        after = take_candidate(self.world, candidate[0])
        loss = sum(
            (
                self.share(request, weight, tree, c)
                * Fraction(
                    max(
                        0, self.count(self.world, request, tree) - self.count(after, request, tree)
                    ),
                    self.empty(request, tree),
                )
                for tree in self.reference.trees({p for p, _, _ in candidate[0]})
                for request, weight in requests
                if self.empty(request, tree) > 0
            ),
            Fraction(0),
        )
        greatest = max(
            sum(
                (
                    self.share(request, weight, tree, c)
                    for request, weight in requests
                    if self.empty(request, tree) > 0
                ),
                Fraction(0),
            )
            for tree in self.reference.roots
        )
        return max(1 - loss / greatest, Fraction(0)) if greatest else Fraction(1)

    def stranded(self, name, c, among=None):
        """Return the free amount of a class that is of no use to a mix, rounded down.

        With `among`, a tree counts only if all its providers with the class are among these.
        """
        weighted_requests = [
            (request, weight, sum(group.resources.get(c, 0) for group in request.groups))
            for request, weight in self.mixes[name].requests
        ]
        weighted_requests = [entry for entry in weighted_requests if entry[2]]
        total = Fraction(0)
        for tree in self.reference.roots:
            providers = [
                p
                for p, provider in self.reference.P.items()
                if c in provider.stock and self.reference.root(p) == tree
            ]
            if not providers or any(SHARING in self.reference.traits(p) for p in providers):
                continue
            if among is not None and not among.issuperset(providers):
                continue
            free_amount = sum(self.reference.free(p, c) for p in providers)
            useful_amount = sum(
                weight * min(free_amount, self.count(self.world, request, tree) * amount)
                for request, weight, amount in weighted_requests
            )
            total += free_amount - Fraction(
                useful_amount, sum(weight for _, weight, _ in weighted_requests)
            )
        return math.floor(total)


def emptied(world):
    """The world where nothing is allocated and no provider has a condition."""
    unused = world.using(lambda *_: 0)
    return World(tuple(replace(each, conditions=frozenset()) for each in unused.providers))
