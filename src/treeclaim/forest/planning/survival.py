# SPDX-License-Identifier: Apache-2.0
"""Determines the failures that a cloud survives (contract page 101, section 4).

For each domain, the consumers of its trees are released and placed again in a scratch where these trees are barred;
then all changes are undone. Trees may affect each other, by sharing providers or by an order that depends on the whole
cloud. Their consumers are placed in a Forest without the trees of the domain instead.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.candidate import find_rows, find_trees, make_allocations, no_trees
from treeclaim.forest.placing.explanation import explain_with_rules
from treeclaim.forest.placing.query_pool import QueryPool
from treeclaim.forest.placing.rules import RuleDomains, RuleState, make_rule_states, prepare_rules
from treeclaim.forest.placing.scratch import ScratchForest
from treeclaim.forest.placing.tree_counts import bound_by_tree
from treeclaim.forest.planning.assumptions import release_held
from treeclaim.forest.planning.consumers import (
    Consumers,
    PlannedConsumer,
    make_need_key,
    sum_demand,
)
from treeclaim.forest.table.columns import Mask, sum_capped
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts, add_held, free_amounts
from treeclaim.model.claim import Amounts
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.extension.planning import Failures
from treeclaim.model.names import UNKNOWN_TYPE
from treeclaim.model.request import CandidateRequest, TermName

_QUERY_BYTES = 64_000_000
"""Bytes of queries that are kept from one domain to the next. Beyond it, queries are dropped."""

_CLOUD_TERMS = frozenset({TermName.KEEP, TermName.MOST, TermName.LEAST})
"""Terms of an order that depend on further trees than those of a candidate."""


@dataclass(slots=True)
class _Failure:
    """A domain that fails, and the outcome.

    Attributes:
        trees: Mask of the trees of the domain.
        released: The consumers with allocations in these trees.
        to_place: The consumers that are placed again, in this order.
        lost_count: Number of released consumers of the requested types.
        unplaced: Consumers of `to_place` without a place, in the same order.
        is_proven: Whether all consumers of `to_place` were placed, or no order can place all of them.
    """

    domain: int
    trees: Mask
    released: Sequence[PlannedConsumer]
    to_place: Sequence[PlannedConsumer]
    lost_count: int
    unplaced: Sequence[str] = ()
    is_proven: bool = True

    @property
    def without_request(self) -> int:
        """Return the number of lost consumers without a valid request."""
        return self.lost_count - len(self.to_place)

    @property
    def survives(self) -> bool | None:
        """Return whether every lost consumer was placed; None if a consumer has no valid request."""
        if self.unplaced:
            return False
        return None if self.without_request else True


def check_survival(
    forest: Forest, consumers: Consumers, call: Failures, budget: Budget
) -> dict[str, Any]:
    """Determine which failures a cloud survives; domains not examined before the deadline count as unknown.

    The Forest must have the held amounts, and `consumers` all consumers with allocations.
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
        domains += map(survey.make_document, listed)
        if call.explain and listed and listed[0].unplaced:
            # `is_complete` stays false if the deadline ends the explanation.
            are_all_examined, is_complete = is_complete, False
            domains[0]["explanation"] = survey.explain(listed[0])
            is_complete = are_all_examined
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
    def __init__(
        self, forest: Forest, consumers: Consumers, call: Failures, budget: Budget
    ) -> None:
        self._forest = forest
        self._consumers = consumers
        self._call = call
        self._budget = budget
        self._domains = RuleDomains(forest, call.domains, budget)
        order = forest.order
        roots = order.roots.tolist()
        self._names = dict(zip(map(forest.uuid_of, roots), forest.names(roots), strict=True))
        self._uuids = list(self._names) if call.domains is None else list(call.domains)
        self._consumers_by_tree: dict[int, list[str]] = defaultdict(list)
        for consumer in consumers.values():
            budget.check()
            rows = find_rows(forest, consumer.allocations)
            for tree in {int(order.tree[at]) for at in rows}:
                self._consumers_by_tree[tree].append(consumer.uuid)
        self._need_key = make_need_key(forest)

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

    def make_document(self, failure: _Failure) -> dict[str, Any]:
        """Return the member of `domains` in the response."""
        uuid, unplaced = self._uuids[failure.domain], failure.unplaced
        return {
            "uuid": uuid,
            "name": self._names[uuid] if self._call.domains is None else None,
            "survives": failure.survives,
            "consumers": failure.lost_count,
            "without_request": failure.without_request,
            "unplaced": len(unplaced),
            "first_unplaced": unplaced[0] if unplaced else None,
            # The need of a consumer without a request is unknown, so only a failure can be proven.
            "proven": failure.is_proven and failure.survives is not None,
        }

    def examine(self) -> Iterator[_Failure]:
        """Yield each failure with its outcome; failures that need a Forest without their trees come last."""
        trials = self._make_trials()
        unbarrable: list[_Failure] = []
        for domain in range(self._domains.count):
            self._budget.check()
            failure = self._make_failure(domain)
            if failure.to_place and not trials.can_bar(failure):
                unbarrable.append(failure)
                continue
            trials.examine(failure, failure.trees)
            yield failure
        for failure in unbarrable:
            self._make_trials(failure).examine(failure)
            yield failure

    def _make_trials(self, failure: _Failure | None = None) -> "_Trials":
        forest = self._forest.view_without_trees(failure.trees) if failure else self._forest
        return _Trials(forest, self._consumers, self._call, self._budget)

    def _make_failure(self, domain: int) -> _Failure:
        trees = self._domains.find_trees_in_any(np.arange(self._domains.count) == domain)
        affected = {
            uuid
            for tree in np.flatnonzero(trees).tolist()
            for uuid in self._consumers_by_tree[tree]
        }
        released = [
            self._consumers[uuid] for uuid in affected if not self._consumers[uuid].is_hold
        ]
        types = self._call.types
        lost = [
            consumer
            for consumer in released
            if types is None or (consumer.type or UNKNOWN_TYPE) in types
        ]
        to_place = sorted((each for each in lost if each.requests), key=self._need_key)
        return _Failure(domain, trees, released, to_place, len(lost))

    def explain(self, failure: _Failure) -> dict[str, Any]:
        """Explain why the first unplaced consumer of a failure finds no place beside the consumers before it."""
        trials = self._make_trials(failure)
        with trials.release_consumers(failure):
            first = next(trials.place_consumers(failure))
            held_amounts = trials.forest.held_amounts
            for consumer in failure.released:
                held_amounts = release_held(trials.forest, held_amounts, consumer, set())
            if held_amounts.everywhere is not None:
                lent = held_amounts.of_holds(trials.forest, self._call.from_holds)
                held_amounts = HeldAmounts({}, add_held(held_amounts.everywhere, lent, -1))
            return explain_with_rules(
                trials.forest.make_view(held_amounts=held_amounts),
                self._consumers[first].requests[0],
                trials.rules.get(first, ()),
                self._budget,
            )


class _Trials:
    """Failures in one scratch, each undone before the next; queries are kept in between."""

    def __init__(
        self, forest: Forest, consumers: Consumers, call: Failures, budget: Budget
    ) -> None:
        holds = [forest.held_amounts.by_hold.get(hold, {}) for hold in call.from_holds]
        self._scratch = ScratchForest(free_amounts(forest, holds, budget) if holds else forest)
        self.forest = self._scratch.forest
        self.rules: Mapping[str, Sequence[RuleState]] = {}
        """The states of the rules of the current failure, by consumer."""
        self._barred = no_trees(forest)
        self._call = call
        self._rules_in_force = prepare_rules(forest, call.rules, budget)
        self._trees = {
            name: find_trees(forest, find_rows(forest, consumers[name].allocations))
            for rule in call.rules
            for name in rule.consumers & consumers.keys()
        }
        self._budget = budget
        self._pool = QueryPool(self._scratch, budget, _QUERY_BYTES)

    def can_bar(self, failure: _Failure) -> bool:
        """Return whether barring the trees has the same outcome as removing them, as trees do not affect each other."""
        requests = {request for consumer in failure.to_place for request in consumer.requests}
        return all(
            self._pool.get_query(request).are_apart
            and not (request.order and _CLOUD_TERMS & {term.name for term in request.order.terms})
            for request in requests
        )

    def examine(self, failure: _Failure, barred: Mask | None = None) -> None:
        """Determine the outcome of a failure, and whether it is proven."""
        if not failure.to_place:
            return
        with self.release_consumers(failure, barred):
            failure.unplaced = list(self.place_consumers(failure))
            failure.is_proven = not failure.unplaced
            if failure.unplaced:
                self._scratch.remove_placed()
                # After the deadline the outcome stays unproven, and the next check ends the survey.
                with suppress(SearchGivenUpError):
                    failure.is_proven = self._is_proven_unplaceable(failure)

    @contextmanager
    def release_consumers(self, failure: _Failure, barred: Mask | None = None) -> Iterator[None]:
        """Release the consumers of a failure, and bar trees, while the block runs."""
        self._barred = no_trees(self.forest) if barred is None else barred
        tree = self.forest.order.tree
        freed = [
            (row, name, sign * amount)
            for consumer in failure.released
            for holdings, sign in self._list_changes(consumer)
            for row, name, amount in make_allocations(self.forest, holdings)
            if not self._barred[tree[row]]
        ]
        self._scratch.give_back(freed)
        released = {consumer.uuid for consumer in failure.released}
        staying = {uuid: trees for uuid, trees in self._trees.items() if uuid not in released}
        self.rules = make_rule_states(self._rules_in_force, staying)
        try:
            yield
        finally:
            self._scratch.remove_placed()
            self._scratch.take(freed)

    def _list_changes(self, consumer: PlannedConsumer) -> Iterator[tuple[Amounts, int]]:
        """Yield the freed amounts of a released consumer with the sign 1, and amounts that return to holds with -1."""
        yield consumer.allocations, 1
        for hold, drawn_amounts in consumer.drawn_amounts.items():
            if hold not in self._call.from_holds:
                yield drawn_amounts, -1

    def place_consumers(self, failure: _Failure) -> Iterator[str]:
        """Place the consumers of a failure one after the other; yield the unplaced consumers."""
        for consumer in failure.to_place:
            self._budget.check()
            rules = self.rules.get(consumer.uuid, ())
            match = self._pool.find_first(consumer.requests, ~self._barred, rules)
            if match is None:
                yield consumer.uuid
                continue
            _, candidate = match
            self._scratch.place(candidate.allocations)
            for rule in rules:
                rule.add(candidate.trees)

    # -- proofs ----------------------------------------------------------------------------------

    def _is_proven_unplaceable(self, failure: _Failure) -> bool:
        """Return whether upper bounds prove that no order places all consumers; no consumer may be placed now."""
        counts = Counter(consumer.requests for consumer in failure.to_place)
        unplaced = set(failure.unplaced)
        unplaced_requests = dict.fromkeys(
            consumer.requests for consumer in failure.to_place if consumer.uuid in unplaced
        )
        if any(
            counts[requests] > sum(self._bound_fits(request) for request in requests)
            for requests in unplaced_requests
        ):
            return True
        needed_units: Counter[str] = Counter()
        for requests, count in counts.items():
            for name, amount in _find_least_demand(requests).items():
                needed_units[name] += count * amount
        return any(amount > self._sum_free(name) for name, amount in needed_units.items())

    def _bound_fits(self, request: CandidateRequest) -> int:
        self._budget.check()
        with self._budget.scope():
            are_joined = not self._pool.get_query(request).are_apart
            bounds = bound_by_tree(self.forest, request, self._budget, are_joined=are_joined)
            return sum_capped(bounds if are_joined else bounds[~self._barred])

    def _sum_free(self, name: str) -> int:
        columns = self.forest.class_inventories(name)
        indices = columns.living_indices()
        trees = self.forest.order.tree[columns.row.values[indices]]
        # An over-committed inventory does not reduce the free units of other inventories.
        return sum_capped(np.maximum(columns.free.values[indices][~self._barred[trees]], 0))


def _find_least_demand(requests: Sequence[CandidateRequest]) -> Mapping[str, int]:
    sums = [sum_demand(request) for request in requests]
    return {name: min(amounts[name] for amounts in sums) for name in sums[0]}
