# SPDX-License-Identifier: Apache-2.0
"""Failures tried in a scratch: the consumers in the trees of a domain are placed elsewhere."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.candidate import allocations_at, no_trees
from treeclaim.forest.placing.queries import IndependentQuery
from treeclaim.forest.placing.query_pool import QueryPool
from treeclaim.forest.placing.rules import RuleState, rules_in_force, states_by_member
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.placing.tree_counts import at_most, at_most_by_tree
from treeclaim.forest.planning.consumers import Amounts, PlannedConsumer, demand
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import with_free
from treeclaim.forest.table.sums import sum_of
from treeclaim.model.extension.order import TermName
from treeclaim.model.extension.planning import Failures
from treeclaim.model.request import CandidateRequest

_QUERY_BYTES = 64_000_000
"""Bytes of queries that are kept from one domain to the next; beyond that they are made anew."""

_LOCAL_TERMS = frozenset(TermName) - {TermName.KEEP}
"""Terms of an order that depend only on the trees of a candidate."""


@dataclass(frozen=True, slots=True)
class DomainFailure:
    """A domain that fails.

    Attributes:
        domain: Its number.
        gone: Its trees.
        released: The consumers with allocations there.
        placed_anew: The consumers that are placed again, in this order.
        count: Number of released consumers of the requested types.
    """

    domain: int
    gone: Mask
    released: Sequence[PlannedConsumer]
    placed_anew: Sequence[PlannedConsumer]
    count: int


class FailureTrials:
    """Tries failures in a scratch and undoes them; queries are kept from one failure to the next.

    Attributes:
        scratch: The usage: between failures that of the Forest.
        rules: The rules of the consumers that are placed now, by consumer.
    """

    def __init__(
        self,
        forest: Forest,
        call: Failures,
        trees: Mapping[str, Sequence[int]],
        budget: Budget,
    ) -> None:
        """Begin with all present consumers, given the trees of those whom rules name."""
        holds = [forest.held.by_hold.get(hold, {}) for hold in call.from_holds]
        self.scratch = Scratch(with_free(forest, holds, budget) if holds else forest)
        self.rules: Mapping[str, Sequence[RuleState]] = {}
        self._gone = no_trees(forest)
        self._forest = forest
        self._call = call
        self._rules_in_force = rules_in_force(forest, call.rules, budget)
        self._trees = trees
        self._budget = budget
        self._pool = QueryPool(self.scratch, budget, _QUERY_BYTES)

    def can_bar(self, failure: DomainFailure) -> bool:
        """Return whether the answer is the same if the trees are there and nobody may take them.

        It is not if trees affect each other, by sharing providers or by the order.
        """
        requests = {request for consumer in failure.placed_anew for request in consumer.requests}
        return all(
            isinstance(self._pool.query(request), IndependentQuery)
            and (
                request.order is None
                or all(term.name in _LOCAL_TERMS for term in request.order.terms)
            )
            for request in requests
        )

    @contextmanager
    def failing(self, failure: DomainFailure, gone: Mask) -> Iterator[None]:
        """Release the consumers of a domain while the block runs, in which some trees are barred."""
        tree = self._forest.order.tree
        self._gone = gone
        freed = [
            (row, name, sign * amount)
            for consumer in failure.released
            for holdings, sign in self._changes(consumer)
            for row, name, amount in allocations_at(self._forest, holdings)
            if not gone[tree[row]]
        ]
        self.scratch.give_back(freed)
        released = {consumer.uuid for consumer in failure.released}
        staying = {uuid: trees for uuid, trees in self._trees.items() if uuid not in released}
        self.rules = states_by_member(self._rules_in_force, staying)
        try:
            yield
        finally:
            self.scratch.remove_placed()
            self.scratch.take(freed)

    def _changes(self, consumer: PlannedConsumer) -> Iterator[tuple[Amounts, int]]:
        """Yield what a released consumer gives back, and with the sign -1 what returns to holds."""
        yield consumer.allocations, 1
        for hold, drawn in consumer.drawn.items():
            if hold not in self._call.from_holds:
                yield drawn, -1

    # -- placing consumers -----------------------------------------------------------------------

    def unplaced(self, failure: DomainFailure) -> Iterator[str]:
        """Place the consumers of a failure; yield those that find no place beside those before."""
        for consumer in failure.placed_anew:
            self._budget.check()
            rules = self.rules.get(consumer.uuid, ())
            place = self._pool.first(consumer.requests, ~self._gone, rules)
            if place is None:
                yield consumer.uuid
                continue
            _, candidate = place
            self.scratch.place(candidate.allocations)
            for rule in rules:
                rule.add(candidate.trees)

    # -- proving that they have no place ---------------------------------------------------------

    def cannot_place(self, failure: DomainFailure, unplaced: Sequence[str]) -> bool:
        """Return whether it is proven that not all find a place, with nobody placed yet."""
        groups = Counter(consumer.requests for consumer in failure.placed_anew)
        unplaced_uuids = set(unplaced)
        unplaced_requests = dict.fromkeys(
            consumer.requests
            for consumer in failure.placed_anew
            if consumer.uuid in unplaced_uuids
        )
        if any(
            groups[requests] > sum(self._at_most(request) for request in requests)
            for requests in unplaced_requests
        ):
            return True
        needed: Counter[str] = Counter()
        for requests, count in groups.items():
            for name, amount in _least(requests).items():
                needed[name] += count * amount
        return any(amount > self._free(name) for name, amount in needed.items())

    def _at_most(self, request: CandidateRequest) -> int:
        self._budget.check()
        with self._budget.scope():
            if isinstance(self._pool.query(request), IndependentQuery):
                bounds = at_most_by_tree(self.scratch.forest, request, self._budget)
                return sum_of(bounds[~self._gone])
            return at_most(self.scratch.forest, request, self._budget)

    def _free(self, name: str) -> int:
        """Return what is free of a class outside the barred trees."""
        columns = self.scratch.forest.class_inventories(name)
        indices = columns.living()
        order = self.scratch.forest.order
        trees = order.tree[columns.row.values[indices]]
        # An over-committed inventory takes nothing from the others.
        return sum_of(np.maximum(columns.free.values[indices][~self._gone[trees]], 0))


def _least(requests: Sequence[CandidateRequest]) -> Mapping[str, int]:
    """Return what any alternative takes at least of each class."""
    sums = [demand(request) for request in requests]
    return {name: min(amounts[name] for amounts in sums) for name in sums[0]}
