# SPDX-License-Identifier: Apache-2.0
"""Places consumers one after the other, by several orders and with several shuffles of the arrivals."""

import random
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.replay.trace_files import Event, Events, ReplayError, problem, read_query
from treeclaim.forest.bounds.budget import UNBOUNDED
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.order.mixes.room import stranded_by_group
from treeclaim.forest.order.totals import totals_of
from treeclaim.forest.placing.queries import Query, query_of
from treeclaim.forest.placing.scratch import Allocation, Scratch
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.extension.mixes import Mix
from treeclaim.model.request import CandidateRequest

_MOST_BYTES = 500_000_000  # of the searches that are kept


@dataclass(frozen=True, slots=True)
class Plan:
    """The events of a replay.

    Attributes:
        forest: The cloud, where nothing is allocated.
        events: Arrivals and departures.
        mix: The mix that orders may name, and for which stranded amounts are reported.
        counted: The class whose requested amounts are counted.
        seeds: How many shuffles of the arrivals; 0 for all events as they are.
        until: The share of the capacity of the counted class until which arrivals are drawn.
    """

    forest: Forest
    events: Events
    mix: Mix | None
    counted: str
    seeds: int = 0
    until: float | None = None


@dataclass(slots=True)
class Outcome:
    """The outcome of one run.

    Attributes:
        unplaced: Arrivals that found nothing.
        empty_trees: Trees in which nothing is held at the end.
        seconds: CPU time of placing.
        arrivals: How many came.
        allocated: Share of the capacity that is allocated at the end, by class.
        stranded: Share of the capacity that no request of the mix can use, by class.
    """

    unplaced: int = 0
    empty_trees: int = 0
    seconds: float = 0.0
    arrivals: int = 0
    allocated: dict[str, float] = field(default_factory=dict)
    stranded: dict[str, float] = field(default_factory=dict)


class Requests:
    """Reads the queries of a plan with one order, each text once."""

    def __init__(self, plan: Plan, order: str | None) -> None:
        self._plan = plan
        self._order = order
        self._known: dict[str, tuple[CandidateRequest, Counter[str]]] = {}

    def read(self, event: Event) -> tuple[CandidateRequest, Counter[str]]:
        """Return the request of an arrival, and its amounts by class.

        Raises:
            ReplayError: if the query cannot be read, or names something that the cloud lacks.
        """
        query = event.query or ""
        if query not in self._known:
            where = self._plan.events.source, event.line
            request = read_query(where, query, self._order, self._plan.mix)
            try:
                require_known_names(self._plan.forest, request)
            except (TraitsNotFoundError, ResourceClassNotFoundError) as error:
                raise problem(*where, str(error)) from error
            amounts: Counter[str] = Counter()
            for group in request.groups:
                amounts.update(group.resources)
            self._known[query] = request, amounts
        return self._known[query]


class Run:
    """Places the consumers of one run in a cloud that is empty at first."""

    def __init__(self, plan: Plan, requests: Requests) -> None:
        self._plan = plan
        self._requests = requests
        forest = plan.forest
        self._scratch = Scratch(forest)
        classes = forest.catalogue.resource_classes
        names = [name for name, entry in classes.items() if entry.id in forest.classes]
        self._scratch.copy_used(names)
        self._capacity = {name: capacity_of(forest, name) for name in names}
        self._allocated = dict.fromkeys(names, 0)
        self._everywhere = np.ones(len(forest.order.roots), dtype=np.bool_)
        self._in_tree = np.zeros(len(forest.order.roots), dtype=np.int64)
        self._queries: dict[int, Query] = {}
        self._held: dict[str, Sequence[Allocation]] = {}
        self._outcome = Outcome()

    def run(self, events: Iterable[Event]) -> Outcome:
        """Run arrivals and departures in their order; return the outcome."""
        begin = time.process_time()
        for event in events:
            if event.query is not None:
                self._place(event)
            elif (allocations := self._held.pop(event.name, None)) is not None:
                self._scratch.give_back(allocations)
                self._account(allocations, -1)
        outcome = self._outcome
        outcome.seconds = time.process_time() - begin
        outcome.empty_trees = int((self._in_tree == 0).sum())
        outcome.allocated = self._shares(self._allocated)
        if self._plan.mix is not None:
            forest = self._scratch.forest
            rows = forest.living_rows
            stranded = stranded_by_group(
                forest, self._plan.mix, np.zeros_like(rows), rows, count=1
            )
            outcome.stranded = self._shares({name: each[0] for name, each in stranded.items()})
        return outcome

    def _shares(self, amounts: Mapping[str, int]) -> dict[str, float]:
        return {name: amount / max(self._capacity[name], 1) for name, amount in amounts.items()}

    def _place(self, event: Event) -> None:
        self._outcome.arrivals += 1
        query = self._query(self._requests.read(event)[0])
        with UNBOUNDED.scope():
            candidate = query.first(self._everywhere, lambda _: True)
        if candidate is None:
            self._outcome.unplaced += 1
            return
        self._scratch.take(candidate.allocations)
        self._account(candidate.allocations, 1)
        self._held[event.name] = candidate.allocations

    def _query(self, request: CandidateRequest) -> Query:
        query = self._queries.get(id(request))
        if query is None:
            if sum(question.nbytes for question in self._queries.values()) > _MOST_BYTES:
                self._queries.clear()
            query = query_of(self._scratch, request, UNBOUNDED)
            self._queries[id(request)] = query
        return query

    def _account(self, allocations: Sequence[Allocation], sign: int) -> None:
        trees = self._scratch.forest.order.tree
        for position, name, amount in allocations:
            self._allocated[name] += sign * amount
            self._in_tree[trees[position]] += sign


def capacity_of(forest: Forest, name: str) -> int:
    """Return the capacity of a cloud in a class."""
    return int(totals_of(forest, name).some_capacity.sum())


def replay(plan: Plan, orders: Sequence[str | None]) -> list[dict[str, Any]]:
    """Replay by each order in turn; return the mean and the deviation of the outcomes of each.

    Args:
        plan: What is to be replayed; the arrivals of a seed are the same for all orders.
        orders: As `order_by` has them; `none` is the usual order, and None the order of each query.

    Raises:
        ReplayError: if a query cannot be read, or the cloud lacks the counted class.
    """
    classes = plan.forest.catalogue.resource_classes
    if plan.counted not in classes or not capacity_of(plan.forest, plan.counted):
        raise ReplayError(f"the cloud has nothing of {plan.counted}")
    documents = []
    for order in orders:
        outcomes = []
        for seed in range(max(plan.seeds, 1)):
            requests = Requests(plan, order)
            outcomes.append(Run(plan, requests).run(_draw_events(plan, seed, requests)))
        documents.append({"order": order or "as the queries say", **summary_of(outcomes)})
    return documents


def _draw_events(plan: Plan, seed: int, requests: Requests) -> Iterator[Event]:
    """Yield the events of a run; with seeds all arrivals once, shuffled, and then samples of them."""
    if not plan.seeds:
        yield from plan.events.events
        return
    arrivals = [event for event in plan.events.events if event.query is not None]
    draw = random.Random(seed)
    shuffled = arrivals.copy()
    draw.shuffle(shuffled)
    if plan.until is None:
        yield from shuffled
        return
    if not any(requests.read(event)[1][plan.counted] for event in arrivals):
        raise ReplayError(f"no arrival requests {plan.counted}")
    most, requested = plan.until * capacity_of(plan.forest, plan.counted), 0
    while True:
        event = shuffled.pop() if shuffled else draw.choice(arrivals)
        requested += requests.read(event)[1][plan.counted]
        if requested > most:
            return
        yield event


def summary_of(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the mean and the standard deviation of each number of several runs."""
    return {
        "seeds": len(outcomes),
        "unplaced": _spread([outcome.unplaced for outcome in outcomes]),
        "empty_trees": _spread([outcome.empty_trees for outcome in outcomes]),
        "placements_per_second": _spread(
            [outcome.arrivals / max(outcome.seconds, 1e-9) for outcome in outcomes]
        ),
        "allocated": _spreads([outcome.allocated for outcome in outcomes]),
        "stranded": _spreads([outcome.stranded for outcome in outcomes]),
    }


def _spreads(shares: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float | None]]:
    return {name: _spread([share[name] for share in shares]) for name in shares[0]}


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    spread = statistics.stdev(values) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "spread": spread}
