# SPDX-License-Identifier: Apache-2.0
"""Failures that a cloud survives (contract page 101, section 4).

For each domain its consumers are released and placed again in a scratch where its trees may not be used, and
then everything is undone. If trees affect each other, by sharing providers or an order that depends on the whole
cloud, the trees are taken out of the Forest and put back afterwards.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.order.candidate_table import sharing_by_row
from treeclaim.forest.order.totals import totals_of
from treeclaim.forest.placing.candidate import no_trees, positions_of, trees_of
from treeclaim.forest.placing.explanation import explain_with_rules
from treeclaim.forest.placing.rules import Domains
from treeclaim.forest.planning.consumers import UNKNOWN_TYPE, Consumers, PlannedConsumer
from treeclaim.forest.planning.entries import NOWHERE, rows_of_trees
from treeclaim.forest.planning.failures import Failure, FailureTrials
from treeclaim.forest.planning.given import held_after
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts
from treeclaim.model.changes import Changes
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.extension.planning import Failures


@dataclass(slots=True)
class Verdict:
    """The outcome of a failure.

    Attributes:
        domain: Number of the domain.
        consumers: Number of consumers of the requested types that are lost.
        without_request: Number of these that have no valid request.
        unplaced: Consumers that found no place, in the order in which they were placed.
        is_proven: Whether no order could place all consumers, or a placement of all exists.
    """

    domain: int
    consumers: int
    without_request: int
    unplaced: Sequence[str]
    is_proven: bool

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
        forest: Changed on the way, so it must be the caller's own; it contains the held amounts.
        consumers: All consumers with allocations.
        call: Which failures.
        budget: Its end is the deadline; domains not examined by then count as unknown.
    """
    verdicts: list[Verdict] = []
    survey: _Survey | None = None
    is_complete = True
    count = len(forest.order.roots) if call.domains is None else len(call.domains)
    try:
        survey = _Survey(forest, consumers, call, budget)
        verdicts.extend(survey.verdicts())
    except SearchGivenUpError:
        is_complete = False
    domains: list[dict[str, Any]] = []
    if survey is not None:
        listed = _list_consumers(survey, verdicts, call)
        domains = [survey.document(verdict) for verdict in listed]
        if call.explain and listed and listed[0].unplaced:
            try:
                domains[0]["explanation"] = survey.explanation(listed[0])
            except SearchGivenUpError:
                is_complete = False
    survive = sum(verdict.survives is True for verdict in verdicts)
    fail = sum(verdict.survives is False for verdict in verdicts)
    return {
        "survive": survive,
        "fail": fail,
        "unknown": count - survive - fail,
        "of": count,
        "complete": is_complete,
        "domains": domains,
    }


def _list_consumers(
    survey: "_Survey", verdicts: Sequence[Verdict], failures: Failures
) -> Sequence[Verdict]:
    """Return the verdicts to list: failures first, then unknown outcomes."""
    return sorted(
        (verdict for verdict in verdicts if failures.shows_all or not verdict.survives),
        key=lambda verdict: (
            -len(verdict.unplaced),
            -verdict.without_request,
            survey.uuid(verdict.domain),
        ),
    )[: failures.limit]


class _Survey:
    """Looks at failures one after the other."""

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
            self._note(consumer)
        self._need = _need_in(forest)

    def _note(self, consumer: PlannedConsumer) -> None:
        positions = positions_of(self._forest, consumer.allocations)
        for tree in {int(self._forest.order.tree[at]) for at in positions}:
            self._by_tree[tree].append(consumer.uuid)

    def uuid(self, domain: int) -> str:
        """Return the uuid of a domain."""
        return self._uuids[domain]

    def document(self, verdict: Verdict) -> dict[str, Any]:
        """Return a verdict as clients see it."""
        uuid = self.uuid(verdict.domain)
        return {
            "uuid": uuid,
            "name": self._names[uuid] if self._call.domains is None else None,
            "survives": verdict.survives,
            "consumers": verdict.consumers,
            "without_request": verdict.without_request,
            "unplaced": len(verdict.unplaced),
            "first_unplaced": verdict.unplaced[0] if verdict.unplaced else None,
            "proven": verdict.is_proven,
        }

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdict of each failure; those for which trees are taken out come last."""
        trials = self._trials()
        hard: list[Failure] = []
        for domain in range(self._domains.count):
            self._budget.check()
            failure = self._failure(domain)
            if not failure.placed_anew:
                yield self._verdict(failure, [], is_proven=True)
            elif trials.can_bar(failure):
                yield self._try_domain(trials, failure)
            else:
                hard.append(failure)
        for failure in hard:
            with self._without(failure) as (trials, unplaced):
                verdict = self._try_domain(trials, unplaced)
            yield verdict

    def _trials(self) -> FailureTrials:
        trees = _trees_of_ruled(self._forest, self._consumers, self._call)
        return FailureTrials(self._forest, self._call, trees, self._budget)

    def _failure(self, domain: int) -> Failure:
        gone = self._domains.with_any(np.arange(self._domains.count) == domain)
        named = {uuid for tree in np.flatnonzero(gone).tolist() for uuid in self._by_tree[tree]}
        released = [self._consumers[uuid] for uuid in named if not self._consumers[uuid].is_hold]
        types = self._call.types
        affected_consumers = [
            consumer
            for consumer in released
            if types is None or (consumer.type or UNKNOWN_TYPE) in types
        ]
        placed = sorted(
            (consumer for consumer in affected_consumers if consumer.requests), key=self._need
        )
        return Failure(domain, gone, released, placed, len(affected_consumers))

    def _verdict(self, failure: Failure, unplaced: Sequence[str], *, is_proven: bool) -> Verdict:
        without = failure.count - len(failure.placed_anew)
        # Without its request, nobody knows what a consumer needs: only a failure can be proven.
        is_proven = is_proven and bool(unplaced or not without)
        return Verdict(failure.domain, failure.count, without, unplaced, is_proven)

    def _try_domain(self, trials: FailureTrials, failure: Failure) -> Verdict:
        """Place the consumers of a failure; if one finds no place, check whether that is proven."""
        with trials.failing(failure):
            unplaced = list(trials.unplaced(failure))
            is_proven = not unplaced
            if unplaced:
                trials.scratch.remove_placed()
                try:
                    is_proven = trials.cannot_place(failure, unplaced)
                except SearchGivenUpError:
                    # The verdict stands; the next look at the clock ends the survey.
                    is_proven = False
        return self._verdict(failure, unplaced, is_proven=is_proven)

    @contextmanager
    def _without(self, failure: Failure) -> Iterator[tuple[FailureTrials, Failure]]:
        """Take the trees of a domain out of the Forest while the block runs."""
        forest = self._forest
        roots = forest.order.roots[failure.gone].tolist()
        records = [forest.record(row) for row in rows_of_trees(forest, map(forest.uuid_of, roots))]
        numbers = [record.id for record in records]
        forest.apply(Changes(NOWHERE, complete=False, records=(), removed=numbers, catalogue=None))
        try:
            yield self._trials(), replace(failure, gone=no_trees(forest))
        finally:
            forest.apply(
                Changes(NOWHERE, complete=False, records=records, removed=(), catalogue=None)
            )

    def explanation(self, verdict: Verdict) -> dict[str, Any]:
        """Explain why the first consumer of a failure finds no place, beside those before it."""
        failure = self._failure(verdict.domain)
        with self._without(failure) as (trials, unplaced), trials.failing(unplaced):
            first = next(trials.unplaced(unplaced))
            rules = trials.rules.get(first, ())
            request = self._consumers[first].requests[0]
            held = self._forest.held
            for consumer in failure.released:
                held = held_after(self._forest, held, consumer, set())
            if held.everywhere is not None:
                lent = list(held.of_holds(self._forest, self._call.from_holds))
                held = HeldAmounts({}, held.everywhere.less(lent))
            forest = trials.scratch.forest.holding(held)
            return explain_with_rules(forest, request, rules, self._budget)


def _trees_of_ruled(
    forest: Forest, consumers: Consumers, failures: Failures
) -> dict[str, tuple[int, ...]]:
    """Return the trees of all whom rules name and who hold something."""
    named = {name for rule in failures.rules for name in rule.consumers if name in consumers}
    sharing = sharing_by_row(forest)
    return {
        name: trees_of(forest, sharing, positions_of(forest, consumers[name].allocations))
        for name in named
    }


def _need_in(forest: Forest) -> Callable[[PlannedConsumer], tuple[Fraction, str]]:
    """Return the key by which consumers are placed: the greatest share of a class in the whole cloud, then the uuid."""

    @cache
    def capacity(name: str) -> int:
        return int(totals_of(forest, name).tree_capacity.sum())

    @cache
    def share(sums: frozenset[tuple[str, int]]) -> Fraction:
        # What there is none of is needed most.
        shares = [
            Fraction(amount, capacity(name) or 1) + (0 if capacity(name) else 10**12)
            for name, amount in sums
        ]
        return -max(shares, default=Fraction(0))

    return lambda consumer: (share(frozenset(consumer.sums().items())), consumer.uuid)
