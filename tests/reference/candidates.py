# SPDX-License-Identifier: Apache-2.0
"""The candidates of a request by brute force: contract page 90, section 4, line by line.

Names and order follow the page. It is meant to be read beside it, not to be fast.
"""

import itertools
import math

SHARING = "MISC_SHARES_VIA_AGGREGATE"


class TooManyError(Exception):
    """More combinations than anyone wants to try."""


class Reference:
    """Answers for one world."""

    def __init__(self, world):
        self.P = {p.name: p for p in world.providers}
        self.S = {name for name, p in self.P.items() if SHARING in p.traits}

    def anc(self, p):
        chain = [p]
        while self.P[chain[-1]].parent is not None:
            chain.append(self.P[chain[-1]].parent)
        return chain

    def root(self, p):
        return self.anc(p)[-1]

    def traits(self, p):
        return self.P[p].traits

    def aggs(self, p):
        return self.P[p].aggregates

    def cap(self, p, c):
        stock = self.P[p].stock[c]
        return (stock.total - stock.reserved) * stock.allocation_ratio

    def fit(self, p, c, n):
        stock = self.P[p].stock.get(c)
        return (
            stock is not None
            and stock.used + n <= self.cap(p, c)
            and stock.min_unit <= n <= stock.max_unit
            and n % stock.step_size == 0
        )

    def anchors(self, p):
        found = {self.root(p)}
        if p in self.S:
            found |= {self.root(q) for q in self.P if self.aggs(q) & self.aggs(p)}
        return found

    def is_in(self, p, g):
        return all(self.aggs(p) & m for m in g.member_of)

    def is_out(self, p, g):
        return bool(self.aggs(p) & g.not_member_of)

    def in_tree(self, p, g):
        return g.in_tree is None or (g.in_tree in self.P and self.root(p) == self.root(g.in_tree))

    def suffixed(self, g, a):
        """Solutions of a suffixed group: (A, V)."""
        return [
            (frozenset((p, c, n) for c, n in g.resources.items()), frozenset({p}))
            for p in self.P
            if a in self.anchors(p)
            and self.in_tree(p, g)
            and self.is_in(p, g)
            and not self.is_out(p, g)
            and all(self.fit(p, c, n) for c, n in g.resources.items())
            and all(s & self.traits(p) for s in g.required)
            and not g.forbidden & self.traits(p)
        ]

    def use(self, p, c, a, g):
        return (
            self.fit(p, c, g.resources[c])
            and self.in_tree(p, g)
            and (
                self.root(p) == a
                or (
                    p in self.S and g.in_tree is None and self.is_in(p, g) and a in self.anchors(p)
                )
            )
            and (self.is_in(p, g) or self.is_in(a, g))
            and not self.is_out(p, g)
            and not self.is_out(a, g)
            and not g.forbidden & self.traits(p)
        )

    def unsuffixed(self, g, a):
        """Solutions of the unsuffixed group: (A, V)."""
        choices = [[p for p in self.P if self.use(p, c, a, g)] for c in g.resources]
        solutions = []
        for f in itertools.product(*choices):
            traits = frozenset().union(*(self.traits(p) for p in f))
            if all(s & traits for s in g.required):
                pairs = zip(f, g.resources.items(), strict=True)
                solutions.append((frozenset((p, c, n) for p, (c, n) in pairs), frozenset(f)))
        return solutions

    def candidates(self, request, most=math.inf):
        """The set of (alloc, map) as frozen values.

        Raises:
            TooManyError: if more combinations would have to be tried.
        """
        found = set()
        tried = 0
        for a, p in self.P.items():
            if p.parent is not None:
                continue
            if not request.root_required <= p.traits or request.root_forbidden & p.traits:
                continue
            solutions = [
                self.suffixed(g, a) if g.suffix else self.unsuffixed(g, a) for g in request.groups
            ]
            tried += math.prod(map(len, solutions))
            if tried > most:
                raise TooManyError
            for sigma in itertools.product(*solutions):
                candidate = self._combined(request, sigma)
                if candidate is not None:
                    found.add(candidate)
        return found

    def _combined(self, request, sigma):
        V = {g.suffix: v for g, (_, v) in zip(request.groups, sigma, strict=True)}
        alloc = {}
        for A, _ in sigma:
            for p, c, n in A:
                alloc[p, c] = alloc.get((p, c), 0) + n
        if request.isolate:
            chosen = [v for suffix, v in V.items() if suffix]
            if len(set(chosen)) < len(chosen):
                return None
        for L in request.same_subtree:
            X = set().union(*(V[suffix] for suffix in L))
            if not any(all(x in self.anc(y) for y in X) for x in X):
                return None
        for (p, c), n in alloc.items():
            stock = self.P[p].stock[c]
            if stock.used + n > math.trunc(self.cap(p, c)) or n > stock.max_unit:
                return None
        if not request.nested:
            used = {p for p, _ in alloc}
            if len({self.root(p) for p in used}) < len(used):
                return None
        return frozenset((p, c, n) for (p, c), n in alloc.items()), frozenset(V.items())

    def summaries(self, candidates, returned, *, nested=True):
        """The names of the providers in the summaries.

        Args:
            candidates: All there are.
            returned: Those that a limit left.
            nested: False below 1.29.
        """
        trees = {self.root(p) for alloc, _ in returned for p, _, _ in alloc}
        if nested:
            return {p for p in self.P if self.root(p) in trees}
        used = {p for alloc, _ in candidates for p, _, _ in alloc}
        return {p for p in used if self.root(p) in trees}
