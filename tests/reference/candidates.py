# SPDX-License-Identifier: Apache-2.0
"""The candidates of a request by brute force: contract page 90, section 4, line by line.

Parameters of the extension are from page 97, section 2, and page 102.

Names and order follow the page. It is meant to be read beside it, not to be fast.
"""

import itertools
import math
from functools import cache

from tests.reference.expressions import holds

SHARING = "MISC_SHARES_VIA_AGGREGATE"


class TooManyError(Exception):
    """More combinations than anyone wants to try."""


class Reference:
    """Answers for one world."""

    def __init__(self, world):
        self.P = {p.name: p for p in world.providers}
        self.S = {name for name, p in self.P.items() if SHARING in p.traits}
        # A world never changes, and these are needed again for each combination.
        self.anc, self.used, self.anchors = (
            cache(self._anc),
            cache(self._used),
            cache(self._anchors),
        )

    def _anc(self, p):
        """p and all above it, from p to the root."""
        chain = [p]
        while self.P[chain[-1]].parent is not None:
            chain.append(self.P[chain[-1]].parent)
        return chain

    def root(self, p):
        """The root of p's tree."""
        return self.anc(p)[-1]

    @property
    def roots(self):
        """The trees, by their roots."""
        return [name for name, p in self.P.items() if p.parent is None]

    def trees(self, givers):
        """Return the trees of some providers; sharing providers count only if no other provider takes part."""
        return {self.root(p) for p in set(givers) - self.S or givers}

    def traits(self, p):
        """The traits of p."""
        return self.P[p].traits

    def aggs(self, p):
        """The aggregates of p."""
        return self.P[p].aggregates

    def cap(self, p, c):
        """The capacity of class c at p; not rounded."""
        stock = self.P[p].stock[c]
        return (stock.total - stock.reserved) * stock.allocation_ratio

    def capacity(self, p, c):
        """The whole capacity of class c at p, at least 0."""
        return max(math.trunc(self.cap(p, c)), 0)

    def free(self, p, c):
        """The free amount of class c at p, at least 0."""
        return max(self.capacity(p, c) - self.used(p, c), 0) if c in self.P[p].stock else 0

    def consumes(self, p, c):
        """Return what each unit of c at p consumes: provider, class and amount."""
        return self.P[p].consumes.get(c, ())

    def _used(self, p, c):
        """Return the allocated and consumed amount of c at p."""
        return self.P[p].stock[c].used + sum(
            other.stock[name].used * a
            for other in self.P.values()
            for name, entries in other.consumes.items()
            for q, d, a in entries
            if (q, d) == (p, c)
        )

    def uses(self, alloc):
        """Return the total use of some amounts: the amounts and their consumption."""
        uses = dict(alloc)
        for (p, c), n in alloc.items():
            for q, d, a in self.consumes(p, c):
                uses[q, d] = uses.get((q, d), 0) + n * a
        return uses

    def fit(self, p, c, n):
        """Return whether p has room for n of c with its consumption, and n is a legal amount."""
        stock = self.P[p].stock.get(c)
        return (
            stock is not None
            and self.used(p, c) + n <= self.cap(p, c)
            and self.fit_consumed(p, c, n)
            and self.has_units(p, c, n)
        )

    def has_units(self, p, c, n):
        """Return whether n is a legal amount of c at p, whatever is free."""
        stock = self.P[p].stock[c]
        return stock.min_unit <= n <= stock.max_unit and n % stock.step_size == 0

    def common_step(self, c, a):
        """The least common multiple of the steps of all inventories of c that the anchor a reaches."""
        return math.lcm(
            *(
                p.stock[c].step_size
                for p in self.P.values()
                if c in p.stock and a in self.anchors(p.name)
            )
        )

    def fit_consumed(self, p, c, n):
        """Return whether there is room for the consumption of n of c at p."""
        return all(self.used(q, d) + n * a <= self.cap(q, d) for q, d, a in self.consumes(p, c))

    def _anchors(self, p):
        """The roots of the trees that p may serve."""
        anchors = {self.root(p)}
        if p in self.S:
            anchors |= {self.root(q) for q in self.P if self.aggs(q) & self.aggs(p)}
        return anchors

    def is_in(self, p, g):
        """Return whether p is in all aggregates that g requires."""
        return all(self.aggs(p) & m for m in g.member_of)

    def is_out(self, p, g):
        """Return whether p is in an aggregate that g forbids."""
        return bool(self.aggs(p) & g.not_member_of)

    def in_tree(self, p, g):
        """Return whether p is in a tree that g requires."""
        return not g.in_tree or self.root(p) in {self.root(q) for q in g.in_tree if q in self.P}

    def in_subtree(self, p, g):
        """Return whether p is in a subtree that g requires."""
        return not g.in_subtree or not set(g.in_subtree).isdisjoint(self.anc(p))

    def where(self, p, g):
        """Return whether the attributes of p meet the expressions of g."""
        return all(holds(text, self.P[p].attributes) for text in g.where)

    def gives(self, p, g, classes):
        """Return whether conditions permit p to give g some classes (page 102, section 3).

        By the conditions of p, of all of which it consumes for that, and of those above them.
        """
        consumed = [q for c in classes for q, _, _ in self.P[p].consumes.get(c, ())]
        return not g.resources or all(
            self.P[above].conditions <= g.tolerates
            for q in (p, *consumed)
            for above in self.anc(q)
        )

    def suffixed(self, g, a):
        """Solutions of a suffixed group: (A, V)."""
        return [
            (frozenset((p, c, n) for c, n in g.resources.items()), frozenset({p}))
            for p in self.P
            if self.may_serve(p, g, a) and all(self.fit(p, c, n) for c, n in g.resources.items())
        ]

    def may_serve(self, p, g, a):
        """Return whether p may serve the suffixed group g at the anchor a, whatever is free."""
        return (
            a in self.anchors(p)
            and self.in_tree(p, g)
            and self.in_subtree(p, g)
            and self.where(p, g)
            and self.gives(p, g, g.resources)
            and self.is_in(p, g)
            and not self.is_out(p, g)
            and all(s & self.traits(p) for s in g.required)
            and not g.forbidden & self.traits(p)
        )

    def may_use(self, p, c, a, g):
        """Return whether the unsuffixed group g may take c from p at the anchor a."""
        return (
            self.in_tree(p, g)
            and self.in_subtree(p, g)
            and self.where(p, g)
            and self.gives(p, g, (c,))
            and (
                self.root(p) == a
                or (p in self.S and not g.in_tree and self.is_in(p, g) and a in self.anchors(p))
            )
            and (self.is_in(p, g) or self.is_in(a, g))
            and not self.is_out(p, g)
            and not self.is_out(a, g)
            and not g.forbidden & self.traits(p)
        )

    def unsuffixed(self, g, a, request, taken_amounts):
        """Yield solutions (A, V) of the unsuffixed group, beside the amounts of the other groups."""
        choices = []
        for c, n in g.resources.items():
            providers = [p for p in self.P if c in self.P[p].stock and self.may_use(p, c, a, g)]
            if c in request.can_split:
                providers.sort(key=lambda p: self.order(p, a))
                choices.append(list(divisions(self, a, c, n, providers, request, taken_amounts)))
            else:
                choices.append([{(p, c): n} for p in providers if self.fit(p, c, n)])
        solutions = []
        for parts in itertools.product(*choices):
            amounts = {key: n for part in parts for key, n in part.items()}
            V = frozenset(p for p, _ in amounts)
            traits = frozenset().union(*(self.traits(p) for p in V))
            if all(s & traits for s in g.required):
                solutions.append((frozenset((p, c, n) for (p, c), n in amounts.items()), V))
        return solutions

    def order(self, p, a):
        """The place of p in a vector of parts: pre-order of the tree, then sharing ones by uuid."""
        if self.root(p) != a:
            return (1, self.P[p].uuid)
        created = list(self.P)
        return (0, [created.index(ancestor) for ancestor in reversed(self.anc(p))])

    def candidates(self, request, most=math.inf):
        """The set of (alloc, map) as frozen values.

        Raises:
            TooManyError: if more combinations would have to be tried.
        """
        return {candidate for _, candidate in self.anchored(request, most)}

    def matching(self, request, most=math.inf):
        """The anchors that have some candidate."""
        return {a for a, _ in self.anchored(request, most)}

    def anchored(self, request, most):
        """All candidates with the anchors from which they are reached."""
        tried = 0
        for a in self.roots:
            if not self.may_be_root(a, request.root):
                continue
            suffixed = [g for g in request.groups if g.suffix]
            plain = [g for g in request.groups if not g.suffix]
            solutions = [self.suffixed(g, a) for g in suffixed]
            tried += math.prod(map(len, solutions))
            if tried > most:
                raise TooManyError
            for sigma in itertools.product(*solutions):
                taken_amounts = self.sum_taken(suffixed, sigma)
                unsuffixed_choices = [self.unsuffixed(g, a, request, taken_amounts) for g in plain]
                tried += math.prod(map(len, unsuffixed_choices))
                if tried > most:
                    raise TooManyError
                for tau in itertools.product(*unsuffixed_choices):
                    candidate = self._combined(request, [*suffixed, *plain], [*sigma, *tau])
                    if candidate is not None:
                        yield a, candidate

    def sum_taken(self, groups, sigma):
        """Return the amounts of the groups beside which an amount is divided."""
        return total(sigma)

    def may_be_root(self, a, g):
        """Return whether the anchor a meets the conditions on the root."""
        return (
            all(s & self.traits(a) for s in g.required)
            and not g.forbidden & self.traits(a)
            and self.is_in(a, g)
            and not self.is_out(a, g)
            and self.in_tree(a, g)
            and self.where(a, g)
            and a not in {self.root(q) for q in g.not_in_tree if q in self.P}
        )

    def _combined(self, request, groups, sigma):
        V = {g.suffix: v for g, (_, v) in zip(groups, sigma, strict=True)}
        alloc = total(sigma)
        for suffixes in request.isolated:
            if any(V[suffixes] & v for suffix, v in V.items() if suffix not in ("", suffixes)):
                return None
        for plain, outside in request.same_subtree:
            X = set().union(*(V[suffix] for suffix in plain))
            heads = [x for x in X if all(x in self.anc(y) for y in X)]
            if not heads:
                return None
            Y = set().union(*(V[suffix] for suffix in outside))
            if any(heads[0] in self.anc(y) for y in Y):
                return None
        if not (self.values_are_right(request, V) and self.fits_together(alloc)):
            return None
        if not request.nested:
            used = {p for p, _ in alloc}
            if len({self.root(p) for p in used}) < len(used):
                return None
        return frozenset((p, c, n) for (p, c), n in alloc.items()), frozenset(V.items())

    def values_are_right(self, request, V):
        """Return whether groups have equal or distinct values of attributes, as requested."""
        for name, suffixes, is_same in request.values:
            values = [self.P[p].attributes.get(name) for suffix in suffixes for p in V[suffix]]
            different = {(type(value), value) for value in values}
            if None in values or len(different) != (1 if is_same else len(values)):
                return False
        return True

    def fits_together(self, alloc):
        """Return whether all amounts taken from a provider fit, consumption included."""
        return self.are_permitted(alloc) and all(
            self.used(p, c) + n <= math.trunc(self.cap(p, c))
            for (p, c), n in self.uses(alloc).items()
        )

    def are_permitted(self, alloc):
        """Return whether no sum of amounts exceeds the max_unit of an inventory."""
        return all(n <= self.P[p].stock[c].max_unit for (p, c), n in alloc.items())

    def summaries(self, candidates, returned, *, nested=True):
        """The names of the providers in the summaries.

        Args:
            candidates: All there are.
            returned: The candidates within a limit.
            nested: False below 1.29.
        """
        trees = {self.root(p) for alloc, _ in returned for p, _, _ in alloc}
        if nested:
            return {p for p in self.P if self.root(p) in trees}
        used = {p for alloc, _ in candidates for p, _, _ in alloc}
        return {p for p in used if self.root(p) in trees}


def total(sigma):
    """Return the sums of the amounts of some solutions."""
    alloc = {}
    for A, _ in sigma:
        for p, c, n in A:
            alloc[p, c] = alloc.get((p, c), 0) + n
    return alloc


def divisions(reference, a, c, n, providers, request, taken_amounts):
    """Return one division for each minimal viable set of these providers, in the order of its parts."""
    viable = {}
    for size in range(1, len(providers) + 1):
        step = reference.common_step(c, a) if size > 1 else 1
        for P in itertools.combinations(providers, size):
            if any(set(Q) < set(P) for Q in viable):
                continue
            choices = [parts(reference, p, c, n, taken_amounts.get((p, c), 0), step) for p in P]
            vectors = [vector for vector in itertools.product(*choices) if sum(vector) == n]
            if vectors and request.split_policy == "even":
                viable[P] = filled_up(choices, n)
                assert tuple(viable[P]) in vectors
            elif vectors:
                viable[P] = max(vectors)
    for P, vector in viable.items():
        yield {(p, c): x for p, x in zip(P, vector, strict=True)}


def filled_up(choices, n):
    """The smallest parts of all, of which the smallest that can grow grows until they add up to n."""
    vector = [min(choice) for choice in choices]
    while sum(vector) < n:
        growing = [at for at, choice in enumerate(choices) if vector[at] < max(choice)]
        at = min(growing, key=lambda at: vector[at])
        vector[at] = min(x for x in choices[at] if x > vector[at])
    return vector


def parts(reference, p, c, n, taken_amount, step):
    """Return the multiples of a step up to n that p can give beside its already taken amounts."""
    room = math.trunc(reference.cap(p, c)) - reference.used(p, c) - taken_amount
    return [
        x for x in range(1, n + 1) if x <= room and x % step == 0 and reference.has_units(p, c, x)
    ]
