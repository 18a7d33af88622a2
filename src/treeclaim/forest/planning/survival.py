# SPDX-License-Identifier: Apache-2.0
"""Failures that a cloud survives (contract page 101, section 4).

For each domain its consumers are released and placed again in a scratch where its trees may not be used, and
then everything is undone. If trees affect each other, by sharing providers or an order that depends on the whole
cloud, the consumers are placed in a Forest without these trees instead.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.candidate import allocations_at, no_trees, rows_of, trees_of
from treeclaim.forest.placing.explanation import explain_with_rules
from treeclaim.forest.placing.room import QueryPool
from treeclaim.forest.placing.rules import Domains, RuleState, rules_in_force, states_by_member
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.placing.tree_counts import bounds_by_tree
from treeclaim.forest.planning.consumers import (
    Consumers,
    PlannedConsumer,
    demand,
    need_in,
)
from treeclaim.forest.planning.given import held_after
from treeclaim.forest.table.columns import Mask, sum_capped
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts, add_held, free_amounts
from treeclaim.model.claim import Amounts
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.extension.planning import Failures
from treeclaim.model.names import UNKNOWN_TYPE
from treeclaim.model.request import CandidateRequest, TermName

_QUERY_BYTES = 64_000_000
"""Bytes of queries that are kept from one domain to the next; beyond that they are made anew."""

_CLOUD_TERMS = frozenset({TermName.KEEP, TermName.MOST, TermName.LEAST})
"""Terms of an order that depend on trees beside those of a candidate."""


@dataclass(slots=True)
class _Failure:
    """A domain that fails, and its outcome.

    Attributes:
        domain: Its number.
        gone: Its trees.
        released: The consumers with allocations there.
        placed_anew: The consumers that are placed again, in this order.
        count: Number of released consumers of the requested types.
        unplaced: Consumers that found no place, in the order in which they were placed.
        is_proven: Whether no order could place all consumers that have a request, or a placement of all exists.
    """

    domain: int
    gone: Mask
    released: Sequence[PlannedConsumer]
    placed_anew: Sequence[PlannedConsumer]
    count: int
    unplaced: Sequence[str] = ()
    is_proven: bool = True

    @property
    def without_request(self) -> int:
        """Return the number of consumers that have no valid request."""
        return self.count - len(self.placed_anew)

    @property
    def survives(self) -> bool | None:
        """Return whether every lost consumer found a place; None if that cannot be determined."""
        if self.unplaced:
            return False
        return None if self.without_request else True


def check_survival(
    forest: Forest, consumers: Consumers, call: Failures, budget: Budget
) -> dict[str, Any]:
    """Determine which failures a cloud survives, one domain after the other until the deadline.

    Args:
        forest: The Forest, with the held amounts.
        consumers: All consumers with allocations.
        call: The failures to examine.
        budget: Its end is the deadline; domains not examined by then count as unknown.
    """
    failures: list[_Failure] = []
    domains: list[dict[str, Any]] = []
    is_complete = False
    count = len(forest.order.roots) if call.domains is None else len(call.domains)
    with suppress(SearchGivenUpError):
        survey = _Survey(forest, consumers, call, budget)
        with suppress(SearchGivenUpError):
            failures.extend(survey.examine())
            is_complete = True
        listed = survey.list_domains(failures)
        domains += map(survey.document, listed)
        if call.explain and listed and listed[0].unplaced:
            is_explained, is_complete = is_complete, False
            domains[0]["explanation"] = survey.explanation(listed[0])
            is_complete = is_explained
    survive = sum(failure.survives is True for failure in failures)
    fail = sum(failure.survives is False for failure in failures)
    return {
        "survive": survive,
        "fail": fail,
        "unknown": count - survive - fail,
        "of": count,
        "complete": is_complete,
        "domains": domains,
    }


class _Survey:
    """Examines failures one after the other."""

    def __init__(
        self, forest: Forest, consumers: Consumers, call: Failures, budget: Budget
    ) -> None:
        self._forest = forest
        self._consumers = consumers
        self._call = call
        self._budget = budget
        self._domains = Domains(forest, call.domains, budget)
        order = forest.order
        roots = order.roots.tolist()
        self._names = dict(zip(map(forest.uuid_of, roots), forest.names(roots), strict=True))
        self._uuids = list(self._names) if call.domains is None else list(call.domains)
        self._by_tree: dict[int, list[str]] = defaultdict(list)
        for consumer in consumers.values():
            budget.check()
            rows = rows_of(forest, consumer.allocations)
            for tree in {int(order.tree[at]) for at in rows}:
                self._by_tree[tree].append(consumer.uuid)
        self._need = need_in(forest)

    def list_domains(self, failures: Sequence[_Failure]) -> Sequence[_Failure]:
        """Return the failures to list: those with unplaced consumers first, then unknown outcomes."""
        return sorted(
            (failure for failure in failures if self._call.shows_all or not failure.survives),
            key=lambda failure: (
                -len(failure.unplaced),
                -failure.without_request,
                self._uuids[failure.domain],
            ),
        )[: self._call.limit]

    def document(self, failure: _Failure) -> dict[str, Any]:
        """Return a failure as clients see it."""
        uuid, unplaced = self._uuids[failure.domain], failure.unplaced
        return {
            "uuid": uuid,
            "name": self._names[uuid] if self._call.domains is None else None,
            "survives": failure.survives,
            "consumers": failure.count,
            "without_request": failure.without_request,
            "unplaced": len(unplaced),
            "first_unplaced": unplaced[0] if unplaced else None,
            # The needs of a consumer without a request are unknown: only a failure can be proven.
            "proven": failure.is_proven and failure.survives is not None,
        }

    def examine(self) -> Iterator[_Failure]:
        """Yield each failure with its outcome; those that need a Forest of their own come last."""
        trials = self._trials()
        hard: list[_Failure] = []
        for domain in range(self._domains.count):
            self._budget.check()
            failure = self._failure(domain)
            if failure.placed_anew and not trials.can_bar(failure):
                hard.append(failure)
                continue
            trials.examine(failure, failure.gone)
            yield failure
        for failure in hard:
            self._trials(failure).examine(failure)
            yield failure

    def _trials(self, failure: _Failure | None = None) -> "_Trials":
        """Return trials in the Forest, or in one where the trees of a domain are gone."""
        forest = self._forest.view_without_trees(failure.gone) if failure else self._forest
        return _Trials(forest, self._consumers, self._call, self._budget)

    def _failure(self, domain: int) -> _Failure:
        gone = self._domains.with_any(np.arange(self._domains.count) == domain)
        named = {uuid for tree in np.flatnonzero(gone).tolist() for uuid in self._by_tree[tree]}
        released = [self._consumers[uuid] for uuid in named if not self._consumers[uuid].is_hold]
        types = self._call.types
        lost = [
            consumer
            for consumer in released
            if types is None or (consumer.type or UNKNOWN_TYPE) in types
        ]
        placed_anew = sorted((each for each in lost if each.requests), key=self._need)
        return _Failure(domain, gone, released, placed_anew, len(lost))

    def explanation(self, failure: _Failure) -> dict[str, Any]:
        """Explain why the first consumer of a failure finds no place, beside those before it."""
        trials = self._trials(failure)
        with trials.failing(failure):
            first = next(trials.unplaced(failure))
            held = trials.forest.held
            for consumer in failure.released:
                held = held_after(trials.forest, held, consumer, set())
            if held.everywhere is not None:
                lent = held.of_holds(trials.forest, self._call.from_holds)
                held = HeldAmounts({}, add_held(held.everywhere, lent, -1))
            return explain_with_rules(
                trials.forest.make_view(held=held),
                self._consumers[first].requests[0],
                trials.rules.get(first, ()),
                self._budget,
            )


class _Trials:
    """Tries failures in a scratch and undoes them; queries are kept from one failure to the next.

    Attributes:
        forest: The Forest of the scratch.
        rules: The rules of the consumers that are placed now, by consumer.
    """

    def __init__(
        self, forest: Forest, consumers: Consumers, call: Failures, budget: Budget
    ) -> None:
        holds = [forest.held.by_hold.get(hold, {}) for hold in call.from_holds]
        self._scratch = Scratch(free_amounts(forest, holds, budget) if holds else forest)
        self.forest = self._scratch.forest
        self.rules: Mapping[str, Sequence[RuleState]] = {}
        self._barred = no_trees(forest)
        self._call = call
        self._rules_in_force = rules_in_force(forest, call.rules, budget)
        self._trees = {
            name: trees_of(forest, rows_of(forest, consumers[name].allocations))
            for rule in call.rules
            for name in rule.consumers & consumers.keys()
        }
        self._budget = budget
        self._pool = QueryPool(self._scratch, budget, _QUERY_BYTES)

    def can_bar(self, failure: _Failure) -> bool:
        """Return whether the answer stays the same if the trees are there, but closed to all consumers.

        It is not if trees affect each other, by sharing providers or by the order.
        """
        requests = {request for consumer in failure.placed_anew for request in consumer.requests}
        return all(
            self._pool.query(request).are_apart
            and not (request.order and _CLOUD_TERMS & {term.name for term in request.order.terms})
            for request in requests
        )

    def examine(self, failure: _Failure, barred: Mask | None = None) -> None:
        """Place the consumers of a failure; if one finds no place, check whether that is proven."""
        if not failure.placed_anew:
            return
        with self.failing(failure, barred):
            failure.unplaced = list(self.unplaced(failure))
            failure.is_proven = not failure.unplaced
            if failure.unplaced:
                self._scratch.remove_placed()
                # The outcome needs no time; the next check of the clock ends the survey.
                with suppress(SearchGivenUpError):
                    failure.is_proven = self._cannot_place(failure)

    @contextmanager
    def failing(self, failure: _Failure, barred: Mask | None = None) -> Iterator[None]:
        """Release the consumers of a domain while the block runs, in which some trees are barred."""
        self._barred = no_trees(self.forest) if barred is None else barred
        tree = self.forest.order.tree
        freed = [
            (row, name, sign * amount)
            for consumer in failure.released
            for holdings, sign in self._changes(consumer)
            for row, name, amount in allocations_at(self.forest, holdings)
            if not self._barred[tree[row]]
        ]
        self._scratch.give_back(freed)
        released = {consumer.uuid for consumer in failure.released}
        staying = {uuid: trees for uuid, trees in self._trees.items() if uuid not in released}
        self.rules = states_by_member(self._rules_in_force, staying)
        try:
            yield
        finally:
            self._scratch.remove_placed()
            self._scratch.take(freed)

    def _changes(self, consumer: PlannedConsumer) -> Iterator[tuple[Amounts, int]]:
        """Yield the amounts that a released consumer frees, and with the sign -1 those that return to holds."""
        yield consumer.allocations, 1
        for hold, drawn in consumer.drawn.items():
            if hold not in self._call.from_holds:
                yield drawn, -1

    def unplaced(self, failure: _Failure) -> Iterator[str]:
        """Place the consumers of a failure; yield those that find no place beside those before."""
        for consumer in failure.placed_anew:
            self._budget.check()
            rules = self.rules.get(consumer.uuid, ())
            place = self._pool.find_first(consumer.requests, ~self._barred, rules)
            if place is None:
                yield consumer.uuid
                continue
            _, candidate = place
            self._scratch.place(candidate.allocations)
            for rule in rules:
                rule.add(candidate.trees)

    # -- proving that they have no place ---------------------------------------------------------

    def _cannot_place(self, failure: _Failure) -> bool:
        """Return whether it is proven that not all consumers find a place, before any is placed."""
        groups = Counter(consumer.requests for consumer in failure.placed_anew)
        unplaced = set(failure.unplaced)
        unplaced_requests = dict.fromkeys(
            consumer.requests for consumer in failure.placed_anew if consumer.uuid in unplaced
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
            are_joined = not self._pool.query(request).are_apart
            bounds = bounds_by_tree(self.forest, request, self._budget, are_joined=are_joined)
            return sum_capped(bounds if are_joined else bounds[~self._barred])

    def _free(self, name: str) -> int:
        """Return what is free of a class outside the barred trees."""
        columns = self.forest.class_inventories(name)
        indices = columns.living_indices()
        trees = self.forest.order.tree[columns.row.values[indices]]
        # An over-committed inventory takes nothing from the others.
        return sum_capped(np.maximum(columns.free.values[indices][~self._barred[trees]], 0))


def _least(requests: Sequence[CandidateRequest]) -> Mapping[str, int]:
    """Return what any alternative takes at least of each class."""
    sums = [demand(request) for request in requests]
    return {name: min(amounts[name] for amounts in sums) for name in sums[0]}
