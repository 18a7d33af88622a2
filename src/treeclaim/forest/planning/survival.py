# SPDX-License-Identifier: Apache-2.0
"""Failures that a cloud survives (contract page 101, section 4).

For each domain its consumers are released and placed again in a scratch where its trees may not be used, and
then everything is undone. If trees affect each other, by sharing providers or an order that depends on the whole
cloud, the trees are taken out of the Forest and put back afterwards.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.order.candidate_table import sharing_by_row
from treeclaim.forest.placing.candidate import no_trees, positions_of, trees_of
from treeclaim.forest.placing.explanation import explain_with_rules
from treeclaim.forest.placing.rules import Domains
from treeclaim.forest.planning.consumers import (
    UNKNOWN_TYPE,
    Consumers,
    need_in,
)
from treeclaim.forest.planning.entries import NOWHERE, rows_of_trees
from treeclaim.forest.planning.failures import DomainFailure, FailureTrials
from treeclaim.forest.planning.given import held_after
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts
from treeclaim.model.changes import Changes
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.extension.planning import Failures


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a failure.

    Attributes:
        failure: The failure.
        unplaced: Consumers that found no place, in the order in which they were placed.
        is_proven: Whether no order could place all consumers that have a request, or a placement of all exists.
    """

    failure: DomainFailure
    unplaced: Sequence[str]
    is_proven: bool

    @property
    def without_request(self) -> int:
        """Return the number of consumers that have no valid request."""
        return self.failure.count - len(self.failure.placed_anew)

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
    domains: list[dict[str, Any]] = []
    is_complete = False
    count = len(forest.order.roots) if call.domains is None else len(call.domains)
    with suppress(SearchGivenUpError):
        survey = _Survey(forest, consumers, call, budget)
        with suppress(SearchGivenUpError):
            verdicts.extend(survey.verdicts())
            is_complete = True
        listed = survey.list_domains(verdicts)
        domains += map(survey.document, listed)
        if call.explain and listed and listed[0].unplaced:
            is_explained, is_complete = is_complete, False
            domains[0]["explanation"] = survey.explanation(listed[0])
            is_complete = is_explained
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
            positions = positions_of(forest, consumer.allocations)
            for tree in {int(order.tree[at]) for at in positions}:
                self._by_tree[tree].append(consumer.uuid)
        self._need = need_in(forest)

    def list_domains(self, verdicts: Sequence[Verdict]) -> Sequence[Verdict]:
        """Return the verdicts to list: failures first, then unknown outcomes."""
        return sorted(
            (verdict for verdict in verdicts if self._call.shows_all or not verdict.survives),
            key=lambda verdict: (
                -len(verdict.unplaced),
                -verdict.without_request,
                self._uuids[verdict.failure.domain],
            ),
        )[: self._call.limit]

    def document(self, verdict: Verdict) -> dict[str, Any]:
        """Return a verdict as clients see it."""
        uuid, unplaced = self._uuids[verdict.failure.domain], verdict.unplaced
        return {
            "uuid": uuid,
            "name": self._names[uuid] if self._call.domains is None else None,
            "survives": verdict.survives,
            "consumers": verdict.failure.count,
            "without_request": verdict.without_request,
            "unplaced": len(unplaced),
            "first_unplaced": unplaced[0] if unplaced else None,
            # Without its request, nobody knows what a consumer needs: only a failure can be proven.
            "proven": verdict.is_proven and verdict.survives is not None,
        }

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdict of each failure; those for which trees are taken out come last."""
        trials = self._trials()
        hard: list[DomainFailure] = []
        for domain in range(self._domains.count):
            self._budget.check()
            failure = self._failure(domain)
            if not failure.placed_anew:
                yield Verdict(failure, (), is_proven=True)
            elif trials.can_bar(failure):
                yield self._try_domain(trials, failure, failure.gone)
            else:
                hard.append(failure)
        for failure in hard:
            with self._without(failure) as (trials, gone):
                verdict = self._try_domain(trials, failure, gone)
            yield verdict

    def _trials(self) -> FailureTrials:
        named = {name for rule in self._call.rules for name in rule.consumers}
        sharing = sharing_by_row(self._forest)
        trees = {
            name: trees_of(self._forest, sharing, positions_of(self._forest, consumer.allocations))
            for name in named
            if (consumer := self._consumers.get(name))
        }
        return FailureTrials(self._forest, self._call, trees, self._budget)

    def _failure(self, domain: int) -> DomainFailure:
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
        return DomainFailure(domain, gone, released, placed_anew, len(lost))

    def _try_domain(self, trials: FailureTrials, failure: DomainFailure, gone: Mask) -> Verdict:
        """Place the consumers of a failure; if one finds no place, check whether that is proven."""
        with trials.failing(failure, gone):
            unplaced = list(trials.unplaced(failure))
            is_proven = not unplaced
            if unplaced:
                trials.scratch.remove_placed()
                # The verdict stands without time; the next look at the clock ends the survey.
                with suppress(SearchGivenUpError):
                    is_proven = trials.cannot_place(failure, unplaced)
        return Verdict(failure, unplaced, is_proven)

    @contextmanager
    def _without(self, failure: DomainFailure) -> Iterator[tuple[FailureTrials, Mask]]:
        """Take the trees of a domain out of the Forest while the block runs; then none is to be barred."""
        forest = self._forest
        roots = forest.order.roots[failure.gone].tolist()
        records = [forest.record(row) for row in rows_of_trees(forest, map(forest.uuid_of, roots))]
        numbers = [record.id for record in records]
        forest.apply(Changes(NOWHERE, complete=False, records=(), removed=numbers, catalogue=None))
        try:
            yield self._trials(), no_trees(forest)
        finally:
            forest.apply(
                Changes(NOWHERE, complete=False, records=records, removed=(), catalogue=None)
            )

    def explanation(self, verdict: Verdict) -> dict[str, Any]:
        """Explain why the first consumer of a failure finds no place, beside those before it."""
        failure = verdict.failure
        with self._without(failure) as (trials, gone), trials.failing(failure, gone):
            first = next(trials.unplaced(failure))
            held = self._forest.held
            for consumer in failure.released:
                held = held_after(self._forest, held, consumer, set())
            if held.everywhere is not None:
                lent = list(held.of_holds(self._forest, self._call.from_holds))
                held = HeldAmounts({}, held.everywhere.less(lent))
            return explain_with_rules(
                trials.scratch.forest.holding(held),
                self._consumers[first].requests[0],
                trials.rules.get(first, ()),
                self._budget,
            )
