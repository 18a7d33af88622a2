# SPDX-License-Identifier: Apache-2.0
"""Failures tried in a scratch: consumers with something in the trees of a domain are placed again elsewhere.

What a search begins with takes much longer than to place a consumer, so it is kept from one domain to the
next.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.order.candidate_table import sharing_by_row
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.queries import IndependentQuery, Query, query_of
from treeclaim.forest.placing.rules import PlanRules, RuleState
from treeclaim.forest.placing.scratch import Allocation, Scratch
from treeclaim.forest.placing.tree_counts import at_most, at_most_by_tree
from treeclaim.forest.planning.consumers import PlannedConsumer, demand
from treeclaim.forest.planning.given import freed_by
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import with_free
from treeclaim.forest.table.sums import sum_of
from treeclaim.model.extension.order import TermName
from treeclaim.model.extension.planning import Failures
from treeclaim.model.request import CandidateRequest

_QUERY_BYTES = 64_000_000
"""Bytes of queries that are kept from one domain to the next; beyond that they are made anew."""

_LOCAL_TERMS = frozenset(TermName) - {"keep"}
"""Terms of an order that depend only on the trees of a candidate."""


@dataclass(slots=True)
class FailedDomain:
    """A domain that fails.

    Attributes:
        domain: Its number.
        gone: Its trees.
        released: Who has something there.
        placed_anew: Those of them that are placed, in this order.
        count: How many there are of the types asked for.
    """

    domain: int
    gone: Mask
    released: Sequence[PlannedConsumer]
    placed_anew: Sequence[PlannedConsumer]
    count: int


class FailureScratch:
    """A scratch in which failures are tried and undone, with queries that stay.

    Attributes:
        scratch: What is used: between failures as in the Forest.
        rules: Rules for the consumers placed.
    """

    def __init__(self, forest: Forest, asked: Failures, rules: PlanRules, budget: Budget) -> None:
        """Begin with all present consumers."""
        holds = [forest.held.by_hold.get(hold, {}) for hold in asked.from_holds]
        self.scratch = Scratch(with_free(forest, holds, budget) if holds else forest)
        self._lenders = np.flatnonzero(sharing_by_row(forest))
        self._forest = forest
        self._asked = asked
        self._budget = budget
        self._queries: dict[CandidateRequest, Query] = {}
        self._bytes = 0
        self.rules = rules

    def query(self, request: CandidateRequest) -> Query:
        """Return the query of a request; to be asked for while nothing is tried."""
        query = self._queries.get(request)
        if query is None:
            if self._bytes > _QUERY_BYTES:
                self._queries.clear()
                self._bytes = 0
            with self._budget.scope():
                query = query_of(self.scratch, request, self._budget)
            self._queries[request] = query
            self._bytes += query.nbytes
        return query

    def is_told_by_masks(self, failure: FailedDomain) -> bool:
        """Tell whether it is enough that nobody takes the trees of a domain."""
        lends = bool(failure.gone[self.scratch.forest.order.tree[self._lenders]].any())
        requests = {request for consumer in failure.placed_anew for request in consumer.requests}
        return all(
            isinstance(self.query(request), IndependentQuery) or not lends
            for request in requests
            if not _depends_on_all(request)
        ) and not any(map(_depends_on_all, requests))

    @contextmanager
    def failing(self, failure: FailedDomain) -> Iterator["FailureAttempt"]:
        """Release the consumers of a domain while the block runs."""
        with ExitStack() as stack:
            queries = {}
            for request in dict.fromkeys(
                r for consumer in failure.placed_anew for r in consumer.requests
            ):
                self._budget.check()
                queries[request] = query = self.query(request)
                if not isinstance(query, IndependentQuery) and failure.gone.any():
                    queries[request] = self._elsewhere(request, failure.gone)
                else:
                    stack.callback(query.keep())
            freed = [
                allocation
                for consumer in failure.released
                for allocation in self._freed(consumer, failure.gone)
            ]
            self.scratch.give_back(freed)
            stack.callback(self.scratch.take, freed)
            attempt = FailureAttempt(self, failure, queries, self._budget)
            stack.callback(attempt.give_back)
            yield attempt

    def _elsewhere(self, request: CandidateRequest, gone: Mask) -> Query:
        """Return a query that takes nothing of some trees, in none of which anybody lends."""
        order = self._forest.order
        roots = order.roots[np.flatnonzero(gone)].tolist()
        names = (*request.root.not_in_tree, *map(self._forest.uuid_of, roots))
        elsewhere = replace(request, root=replace(request.root, not_in_tree=names))
        with self._budget.scope():
            return query_of(self.scratch, elsewhere, self._budget)

    def _freed(self, consumer: PlannedConsumer, gone: Mask) -> list[Allocation]:
        """Return what a consumer gives back outside some trees."""
        order = self._forest.order
        freed = []
        for (uuid, name), amount in freed_by(consumer, self._asked.from_holds).items():
            row = self._forest.row_of(uuid)
            if row is None or not amount:
                continue
            if not gone[order.tree[row]] and self._has(row, name):
                freed.append((row, name, amount))
        return freed

    def _has(self, row: int, name: str) -> bool:
        number = self._forest.catalogue.resource_classes[name].id
        return any(class_id == number for class_id, _ in self._forest.inventory_indices(row))

    # -- whether nobody could -------------------------------------------------------------------

    def cannot(self, failure: FailedDomain, unplaced: Sequence[str]) -> bool:
        """Tell whether it is proven that not all find a place, with nobody placed yet."""
        groups = Counter(consumer.requests for consumer in failure.placed_anew)
        left = set(unplaced)
        tried = dict.fromkeys(
            consumer.requests for consumer in failure.placed_anew if consumer.uuid in left
        )
        if any(
            groups[requests] > sum(self._at_most(request, failure.gone) for request in requests)
            for requests in tried
        ):
            return True
        needed: Counter[str] = Counter()
        for requests, count in groups.items():
            for name, amount in _least(requests).items():
                needed[name] += count * amount
        return any(amount > self._free(name, failure.gone) for name, amount in needed.items())

    def _at_most(self, request: CandidateRequest, gone: Mask) -> int:
        self._budget.check()
        with self._budget.scope():
            if isinstance(self.query(request), IndependentQuery):
                bounds = at_most_by_tree(self.scratch, request, self._budget)
                return sum_of(bounds[~gone])
            return at_most(self.scratch, request, self._budget)

    def _free(self, name: str, gone: Mask) -> int:
        """Return what is free of a class outside some trees."""
        columns = self.scratch.forest.class_inventories(name)
        indices = columns.living()
        order = self.scratch.forest.order
        trees = order.tree[columns.row.values[indices]]
        # An over-committed inventory takes nothing from the others.
        return sum_of(np.maximum(columns.free.values[indices][~gone[trees]], 0))


@dataclass(slots=True)
class FailureAttempt:
    """The consumers of a failure, placed one after the other.

    Attributes:
        stand: Where.
        failure: Which.
        queries: That of each request, none of which takes anything of the trees that are gone.
        budget: What it may cost.
        rules: Those that concern the consumers, by consumer.
    """

    stand: FailureScratch
    failure: FailedDomain
    queries: Mapping[CandidateRequest, Query]
    budget: Budget
    rules: dict[str, list[RuleState]] = field(init=False)
    _taken: list[Allocation] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Remove those that are gone from what rules count."""
        gone = {consumer.uuid for consumer in self.failure.released}
        self.rules = self.stand.rules.states(gone)

    def give_back(self) -> None:
        """Let nothing be taken any more."""
        self.stand.scratch.give_back(self._taken)
        self.stand.scratch.end_conditions()
        self._taken.clear()

    def unplaced(self) -> Iterator[str]:
        """Place all consumers; yield those that find no place beside those before."""
        allowed = ~self.failure.gone
        for consumer in self.failure.placed_anew:
            self.budget.check()
            rules = self.rules.get(consumer.uuid, [])
            candidate = self._first(consumer, rules, allowed)
            if candidate is None:
                yield consumer.uuid
                continue
            self.stand.scratch.take(candidate.allocations)
            self.stand.scratch.begin_conditions(candidate.allocations)
            self._taken += candidate.allocations
            for rule in rules:
                rule.add(candidate.trees)

    def _first(
        self, consumer: PlannedConsumer, rules: Sequence[RuleState], allowed: Mask
    ) -> Candidate | None:
        gone = self.failure.gone
        if rules:
            allowed = np.logical_and.reduce([allowed, *(rule.mask({}) for rule in rules)])

        def keeps(trees: Sequence[int]) -> bool:
            return not gone[list(trees)].any() and all(rule.keeps(trees, {}) for rule in rules)

        for request in consumer.requests:
            with self.budget.scope():
                candidate = self.queries[request].first(allowed, keeps)
            if candidate is not None:
                return candidate
        return None


def _depends_on_all(request: CandidateRequest) -> bool:
    """Tell whether the order of candidates depends on trees that none of them has."""
    return request.order is not None and any(
        term.name not in _LOCAL_TERMS for term in request.order.terms
    )


def _least(requests: Sequence[CandidateRequest]) -> Mapping[str, int]:
    """Return what any alternative takes at least of each class."""
    sums = [demand(request) for request in requests]
    return {name: min(amounts[name] for amounts in sums) for name in sums[0]}
