# SPDX-License-Identifier: Apache-2.0
"""One run: consumers come and go, and are placed one after the other by one order."""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.order.mixes.room import stranded
from treeclaim.forest.order.totals import totals_of
from treeclaim.forest.placing.independent import query_of
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.scratch import Allocation, Scratch
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.extension.mixes import Mix
from treeclaim.model.request import CandidateRequest
from treeclaim.replay.files import Event, parsed, problem, with_mix

_MOST_BYTES = 500_000_000
"""Bytes of the searches that are kept; beyond that they are made anew."""

_MOST_POINTS = 1_000

TENTHS = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a consumer requests.

    Attributes:
        request: The request, with its order.
        amounts: By class.
    """

    request: CandidateRequest
    amounts: dict[str, int]


class Reader:
    """Reads the queries of a file with one order, each text once."""

    def __init__(self, source: Path, forest: Forest, order: str | None, mix: Mix | None) -> None:
        """Take the file, the cloud, what `order_by` is to be (None: as queries say), and the mix."""
        self._source = source
        self._forest = forest
        self._order = order
        self._mix = mix
        self._known: dict[str, Wanted] = {}

    def wanted(self, event: Event) -> Wanted:
        """Return what an arrival asks for.

        Raises:
            ReplayError: if that cannot be read.
        """
        query = event.query or ""
        if query not in self._known:
            where = self._source, event.line
            request = with_mix(where, parsed(where, query, self._order), self._mix)
            amounts: dict[str, int] = {}
            for group in request.groups:
                for name, amount in group.resources.items():
                    amounts[name] = amounts.get(name, 0) + amount
            try:
                require_known_names(self._forest, request)
            except (TraitsNotFoundError, ResourceClassNotFoundError) as error:
                raise problem(*where, str(error)) from error
            self._known[query] = Wanted(request, amounts)
        return self._known[query]


@dataclass(frozen=True, slots=True)
class State:
    """Amounts of a resource class at a moment.

    Attributes:
        allocated: Units.
        stranded: Units; None where the mix does not ask for it.
    """

    allocated: int
    stranded: int | None


@dataclass(slots=True)
class Outcome:
    """What a run came to.

    Attributes:
        unplaced: Arrivals that found nothing.
        empty_trees: Trees in which nothing is held at the end.
        seconds: CPU time that placing took.
        arrivals: How many came.
        points: By tenths of what was asked and class: the last state in which at most that was asked.
    """

    unplaced: int = 0
    empty_trees: int = 0
    seconds: float = 0.0
    arrivals: int = 0
    points: dict[int, dict[str, State]] = field(default_factory=dict)


class Run:
    """Places the consumers of one run.

    Attributes:
        capacity: The capacity of the cloud, by class.
    """

    def __init__(
        self, forest: Forest, reader: Reader, mix: Mix | None, asked_class: str | None
    ) -> None:
        """Begin with an empty cloud.

        Args:
            forest: The cloud.
            reader: Reads what arrivals request.
            mix: The mix for which stranded amounts are reported; None for none.
            asked_class: The class whose requested amounts are counted; None for each class itself.
        """
        self._scratch = Scratch(forest)
        self._reader = reader
        self._mix = mix
        self._names = [
            name
            for name, entry in forest.catalogue.resource_classes.items()
            if entry.id in forest.classes
        ]
        self._scratch.copy_used(self._names)
        self.capacity = {
            name: int(totals_of(forest, name).some_capacity.sum()) for name in self._names
        }
        self._counted = [asked_class] if asked_class is not None else self._names
        self._asked = dict.fromkeys(self._names, 0)
        self._allocated = dict.fromkeys(self._names, 0)
        self._reached = dict.fromkeys(self._counted, 0)
        self._everywhere = np.ones(len(forest.order.roots), dtype=np.bool_)
        self._queries: dict[int, Query] = {}
        self._held: dict[str, Sequence[Allocation]] = {}
        self._outcome = Outcome()
        self._in_tree = np.zeros(len(forest.order.roots), dtype=np.int64)

    def of_all(self, events: Iterable[Event], last: int) -> Outcome:
        """Run all arrivals and departures, and return the outcome.

        Args:
            events: In the order in which they happen.
            last: The last point to report, in tenths; 0 for the one that was reached.
        """
        begin = time.process_time()
        for event in events:
            if event.query is None:
                self._release(event.name)
            else:
                self._place(event)
        self._outcome.seconds += time.process_time() - begin
        end = last or max(
            (
                math.ceil(TENTHS * self._asked[name] / self.capacity[name])
                for name in self._counted
                if self.capacity.get(name)
            ),
            default=0,
        )
        for name in self._counted:
            self._note(name, min(end, _MOST_POINTS))
        self._outcome.empty_trees = int((self._in_tree == 0).sum())
        return self._outcome

    def _release(self, name: str) -> None:
        allocations = self._held.pop(name, None)
        if allocations is None:
            return
        self._scratch.give_back(allocations)
        self._account(allocations, -1)

    def _place(self, event: Event) -> None:
        wanted = self._reader.wanted(event)
        self._outcome.arrivals += 1
        self._ask(wanted)
        query = self._query(wanted)
        with UNBOUNDED.scope():
            candidate = query.first(self._everywhere, lambda _: True)
        if candidate is None:
            self._outcome.unplaced += 1
            return
        self._scratch.take(candidate.allocations)
        self._account(candidate.allocations, 1)
        self._held[event.name] = candidate.allocations

    def _ask(self, wanted: Wanted) -> None:
        """Count what is asked, after the points that are reached by then."""
        for name, amount in wanted.amounts.items():
            if name in self._reached and self.capacity.get(name):
                asked = self._asked[name] + amount
                before = (TENTHS * asked - 1) // self.capacity[name]
                if before > self._reached[name]:
                    self._note(name, min(before, _MOST_POINTS))
            if name in self._asked:
                self._asked[name] += amount

    def _note(self, counted: str, tenths: int) -> None:
        """Note what there is now as the points of a class up to a tenth."""
        names = self._names if self._counted != self._names else [counted]
        if tenths <= self._reached[counted]:
            return
        begin = time.process_time()
        lost = {} if self._mix is None else stranded(self._scratch.forest, self._mix)
        # What it takes to look is not part of placing.
        self._outcome.seconds -= time.process_time() - begin
        for tenth in range(self._reached[counted] + 1, tenths + 1):
            point = self._outcome.points.setdefault(tenth, {})
            for name in names:
                point[name] = State(self._allocated[name], lost.get(name))
        self._reached[counted] = tenths

    def _query(self, wanted: Wanted) -> Query:
        query = self._queries.get(id(wanted))
        if query is None:
            if sum(question.nbytes for question in self._queries.values()) > _MOST_BYTES:
                self._queries.clear()
            query = query_of(self._scratch, wanted.request, UNBOUNDED)
            self._queries[id(wanted)] = query
        return query

    def _account(self, allocations: Sequence[Allocation], sign: int) -> None:
        trees = self._scratch.forest.order.tree
        for position, name, amount in allocations:
            self._allocated[name] += sign * amount
            self._in_tree[trees[position]] += sign
