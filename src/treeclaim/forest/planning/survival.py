# SPDX-License-Identifier: Apache-2.0
"""Which failures a cloud survives (contract page 101, section 4).

For each domain its consumers are released and placed anew in a scratch where its trees may not be
taken, and then all is undone. What a search begins with takes much longer than to place a consumer, so
it is kept from one domain to the next. Where that does not tell what a cloud without these trees would
answer, as providers there lend to other trees or the order depends on the whole cloud, the trees are
taken out of the Forest and put back afterwards.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.listing.totals import summable
from treeclaim.forest.order.terms.counted import sharing_by_position
from treeclaim.forest.placing.candidate import Candidate, no_trees, trees_of
from treeclaim.forest.placing.counting.bound import at_most, at_most_by_tree
from treeclaim.forest.placing.explanation import explained_with_rules
from treeclaim.forest.placing.independent import Independent, query_of
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.scratch import Gift, Scratch
from treeclaim.forest.planning.consumers import UNKNOWN_TYPE, Consumers, PlannedConsumer, demand
from treeclaim.forest.planning.entries import NOWHERE, rows_of_trees
from treeclaim.forest.planning.given import freed_by, held_after
from treeclaim.forest.planning.rules import Rules, State, domains_of, in_force
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import Held, with_free
from treeclaim.forest.table.sums import sum_of
from treeclaim.model.changes import Changes
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.extension.order import TermName
from treeclaim.model.extension.planning import Failures
from treeclaim.model.request import CandidateRequest

_QUERY_BYTES = 64_000_000
"""Of queries that are kept from one domain to the next; beyond that they are made anew."""

_LOCAL_TERMS = frozenset(TermName) - {"keep"}
"""Terms of an order that depend on the trees of a candidate alone."""


@dataclass(slots=True)
class Verdict:
    """What a failure comes to.

    Attributes:
        domain: Number of the domain.
        consumers: Who had something there, of the types asked for.
        without_request: How many of these nobody knows how to place.
        unplaced: Who found no place, in the order in which they were tried.
        proven: Whether that, or that there is nobody, is so in any order.
    """

    domain: int
    consumers: int
    without_request: int
    unplaced: Sequence[str]
    proven: bool


def survival(
    forest: Forest, consumers: Consumers, asked: Failures, budget: Budget
) -> dict[str, Any]:
    """Tell which failures a cloud survives, looking at domains until the time is over.

    Args:
        forest: Changed on the way, so it must be the caller's own; it tells what holds have.
        consumers: All that hold something.
        asked: Which failures.
        budget: At its end what was found by then is told.
    """
    verdicts: list[Verdict] = []
    survey: _Survey | None = None
    is_complete = True
    try:
        survey = _Survey(forest, consumers, asked, budget)
        verdicts.extend(survey.verdicts())
    except SearchGivenUpError:
        is_complete = False
    if survey is None:
        return {"survive": 0, "of": 0, "complete": False, "domains": []}
    survive = sum(not verdict.unplaced for verdict in verdicts)
    listed = sorted(
        (verdict for verdict in verdicts if asked.shows_all or verdict.unplaced),
        key=lambda verdict: (-len(verdict.unplaced), survey.uuid(verdict.domain)),
    )[: asked.limit]
    domains = [survey.told(verdict) for verdict in listed]
    if asked.explain and listed and listed[0].unplaced:
        try:
            domains[0]["explanation"] = survey.explanation(listed[0])
        except SearchGivenUpError:
            is_complete = False
    return {"survive": survive, "of": len(verdicts), "complete": is_complete, "domains": domains}


@dataclass(slots=True)
class _Failure:
    """A domain that fails.

    Attributes:
        domain: Its number.
        gone: Its trees.
        released: Who has something there.
        placed_anew: Those of them who are placed, in this order.
        count: How many there are of the types asked for.
    """

    domain: int
    gone: Mask
    released: Sequence[PlannedConsumer]
    placed_anew: Sequence[PlannedConsumer]
    count: int


class _Survey:
    """Looks at failures one after the other."""

    def __init__(
        self, forest: Forest, consumers: Consumers, asked: Failures, budget: Budget
    ) -> None:
        self._forest = forest
        self._consumers = consumers
        self._asked = asked
        self._budget = budget
        self._domains = domains_of(forest, asked.domains, budget)
        order = forest.order
        roots = order.row[order.roots].tolist()
        self._names = dict(zip(map(forest.uuid_of, roots), forest.names(roots), strict=True))
        self._uuids = list(self._names) if asked.domains is None else list(asked.domains)
        self._by_tree: dict[int, list[str]] = defaultdict(list)
        for consumer in consumers.values():
            budget.check()
            self._note(consumer)
        self._need = _Need(forest)
        trees = _trees_of_ruled(forest, consumers, asked)
        self._rules = in_force(forest, asked.rules, trees, budget)

    def _note(self, consumer: PlannedConsumer) -> None:
        positions = positions_of(self._forest, consumer.allocations)
        for tree in {int(self._forest.order.tree[at]) for at in positions}:
            self._by_tree[tree].append(consumer.uuid)

    def uuid(self, domain: int) -> str:
        """Return the uuid of a domain."""
        return self._uuids[domain]

    def told(self, verdict: Verdict) -> dict[str, Any]:
        """Return a verdict as clients see it."""
        uuid = self.uuid(verdict.domain)
        return {
            "uuid": uuid,
            "name": self._names[uuid] if self._asked.domains is None else None,
            "survives": not verdict.unplaced,
            "consumers": verdict.consumers,
            "without_request": verdict.without_request,
            "unplaced": len(verdict.unplaced),
            "first_unplaced": verdict.unplaced[0] if verdict.unplaced else None,
            "proven": verdict.proven,
        }

    def verdicts(self) -> Iterator[Verdict]:
        """Yield what each failure comes to; those for which trees are taken out come last."""
        stand = self._stand()
        hard: list[_Failure] = []
        for domain in range(self._domains.count):
            self._budget.check()
            failure = self._failure(domain)
            if not failure.placed_anew:
                yield self._verdict(failure, [], is_proven=True)
            elif stand.is_told_by_masks(failure):
                with stand.failing(failure) as attempt:
                    yield self._judged(stand, failure, attempt)
            else:
                hard.append(failure)
        for failure in hard:
            with self._without(failure) as (without, left), without.failing(left) as attempt:
                verdict = self._judged(without, left, attempt)
            yield verdict

    def _stand(self) -> "_Stand":
        trees = _trees_of_ruled(self._forest, self._consumers, self._asked)
        rules = Rules(self._forest, self._rules, trees, self._budget)
        return _Stand(self._forest, self._asked, rules, self._budget)

    def _failure(self, domain: int) -> _Failure:
        some = np.zeros(self._domains.count, dtype=np.bool_)
        some[domain] = True
        gone = self._domains.with_any(some)
        named = {uuid for tree in np.flatnonzero(gone).tolist() for uuid in self._by_tree[tree]}
        released = [self._consumers[uuid] for uuid in named if not self._consumers[uuid].is_hold]
        types = self._asked.types
        asked = [
            consumer
            for consumer in released
            if types is None or (consumer.type or UNKNOWN_TYPE) in types
        ]
        placed = sorted((consumer for consumer in asked if consumer.requests), key=self._need.key)
        return _Failure(domain, gone, released, placed, len(asked))

    def _verdict(self, failure: _Failure, unplaced: Sequence[str], *, is_proven: bool) -> Verdict:
        without = failure.count - len(failure.placed_anew)
        return Verdict(failure.domain, failure.count, without, unplaced, is_proven)

    def _judged(self, stand: "_Stand", failure: _Failure, attempt: "_Attempt") -> Verdict:
        """Place who is to be placed; where somebody finds nothing, look whether that is proven."""
        unplaced = list(attempt.unplaced())
        is_proven = not unplaced
        if unplaced:
            attempt.give_back()
            try:
                is_proven = stand.cannot(failure, unplaced)
            except SearchGivenUpError:
                # The verdict stands; the next look at the clock ends the survey.
                is_proven = False
        return self._verdict(failure, unplaced, is_proven=is_proven)

    @contextmanager
    def _without(self, failure: _Failure) -> Iterator[tuple["_Stand", _Failure]]:
        """Take the trees of a domain out of the Forest while the block runs."""
        forest = self._forest
        roots = forest.order.row[forest.order.roots[failure.gone]].tolist()
        records = [forest.record(row) for row in rows_of_trees(forest, map(forest.uuid_of, roots))]
        numbers = [record.id for record in records]
        forest.apply(Changes(NOWHERE, complete=False, records=(), removed=numbers, catalogue=None))
        try:
            yield self._stand(), replace(failure, gone=no_trees(forest))
        finally:
            forest.apply(
                Changes(NOWHERE, complete=False, records=records, removed=(), catalogue=None)
            )

    def explanation(self, verdict: Verdict) -> dict[str, Any]:
        """Explain why the first consumer of a failure finds no place, beside those before it."""
        failure = self._failure(verdict.domain)
        with self._without(failure) as (stand, left), stand.failing(left) as attempt:
            first = next(attempt.unplaced())
            rules = attempt.rules.get(first, [])
            request = self._consumers[first].requests[0]
            held = self._forest.held
            for consumer in failure.released:
                held = held_after(self._forest, held, consumer, set())
            if held.everywhere is not None:
                lent = list(held.of_holds(self._forest, self._asked.from_holds))
                held = Held({}, held.everywhere.less(lent))
            forest = stand.scratch.forest.holding(held)
            return explained_with_rules(forest, request, rules, self._budget)


def positions_of(forest: Forest, uuids: Iterable[str]) -> list[int]:
    """Return the positions of some providers; those that do not exist are left out."""
    rows = [row for row in map(forest.row_of, uuids) if row is not None]
    return [int(forest.order.position[row]) for row in rows]


def _trees_of_ruled(
    forest: Forest, consumers: Consumers, asked: Failures
) -> dict[str, tuple[int, ...]]:
    """Return the trees of all whom rules name and who hold something."""
    named = {name for rule in asked.rules for name in rule.consumers if name in consumers}
    sharing = sharing_by_position(forest)
    return {
        name: trees_of(forest, sharing, positions_of(forest, consumers[name].allocations))
        for name in named
    }


class _Need:
    """Who needs most: the greatest share of a class in the capacity of the whole cloud."""

    def __init__(self, forest: Forest) -> None:
        totals = summable(forest, forest.living_rows, None).totals()
        self._capacity = {name: sums.capacity for name, sums in totals.items()}
        self._known: dict[frozenset[tuple[str, int]], Fraction] = {}

    def key(self, consumer: PlannedConsumer) -> tuple[Fraction, str]:
        """Return what consumers are sorted by: those who need most first, then by uuid."""
        held = frozenset(consumer.sums().items())
        if held not in self._known:
            # What there is none of is needed most.
            shares = [
                Fraction(amount, self._capacity.get(name) or 1)
                + (0 if self._capacity.get(name) else 10**12)
                for name, amount in held
            ]
            self._known[held] = -max(shares, default=Fraction(0))
        return self._known[held], consumer.uuid


class _Stand:
    """A scratch in which failures are tried and undone, with queries that stay.

    Attributes:
        scratch: What is used: between failures as in the Forest.
        sharing: Which providers are sharing ones, by position.
        rules: For who is placed.
    """

    def __init__(self, forest: Forest, asked: Failures, rules: Rules, budget: Budget) -> None:
        holds = [forest.held.by_hold.get(hold, {}) for hold in asked.from_holds]
        self.scratch = Scratch(with_free(forest, holds, budget) if holds else forest)
        self.sharing = sharing_by_position(forest)
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

    def is_told_by_masks(self, failure: _Failure) -> bool:
        """Tell whether it is enough that nobody takes the trees of a domain."""
        lends = bool((failure.gone[self.scratch.forest.order.tree] & self.sharing).any())
        requests = {request for consumer in failure.placed_anew for request in consumer.requests}
        return all(
            isinstance(self.query(request), Independent) or not lends
            for request in requests
            if not _depends_on_all(request)
        ) and not any(map(_depends_on_all, requests))

    @contextmanager
    def failing(self, failure: _Failure) -> Iterator["_Attempt"]:
        """Release the consumers of a domain while the block runs."""
        with ExitStack() as stack:
            queries = {}
            for request in dict.fromkeys(
                r for consumer in failure.placed_anew for r in consumer.requests
            ):
                self._budget.check()
                queries[request] = query = self.query(request)
                if not isinstance(query, Independent) and failure.gone.any():
                    queries[request] = self._elsewhere(request, failure.gone)
                else:
                    stack.callback(query.kept())
            freed = [
                gift
                for consumer in failure.released
                for gift in self._freed(consumer, failure.gone)
            ]
            self.scratch.give_back(freed)
            stack.callback(self.scratch.take, freed)
            attempt = _Attempt(self, failure, queries, self._budget)
            stack.callback(attempt.give_back)
            yield attempt

    def _elsewhere(self, request: CandidateRequest, gone: Mask) -> Query:
        """Return a query that takes nothing of some trees, in none of which anybody lends."""
        order = self._forest.order
        roots = order.row[order.roots[np.flatnonzero(gone)]].tolist()
        names = (*request.root.not_in_tree, *map(self._forest.uuid_of, roots))
        elsewhere = replace(request, root=replace(request.root, not_in_tree=names))
        with self._budget.scope():
            return query_of(self.scratch, elsewhere, self._budget)

    def _freed(self, consumer: PlannedConsumer, gone: Mask) -> list[Gift]:
        """Return what a consumer gives back outside some trees."""
        order = self._forest.order
        freed = []
        for (uuid, name), amount in freed_by(consumer, self._asked.from_holds).items():
            row = self._forest.row_of(uuid)
            if row is None or not amount:
                continue
            position = int(order.position[row])
            if not gone[order.tree[position]] and self._has(row, name):
                freed.append((position, name, amount))
        return freed

    def _has(self, row: int, name: str) -> bool:
        number = self._forest.catalogue.resource_classes[name].id
        return any(class_id == number for class_id, _ in self._forest.inventory_indices(row))

    # -- whether nobody could -------------------------------------------------------------------

    def cannot(self, failure: _Failure, unplaced: Sequence[str]) -> bool:
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
            if isinstance(self.query(request), Independent):
                bounds = at_most_by_tree(self.scratch, request, self._budget)
                return sum_of(bounds[~gone])
            return at_most(self.scratch, request, self._budget)

    def _free(self, name: str, gone: Mask) -> int:
        """Return what is free of a class outside some trees."""
        columns = self.scratch.forest.class_inventories(name)
        indices = columns.living()
        order = self.scratch.forest.order
        trees = order.tree[order.position[columns.row.values[indices]]]
        return sum_of(columns.free.values[indices][~gone[trees]])


def _depends_on_all(request: CandidateRequest) -> bool:
    """Tell whether the order of candidates depends on trees that none of them has."""
    return request.order is not None and any(
        term.name not in _LOCAL_TERMS for term in request.order.terms
    )


def _least(requests: Sequence[CandidateRequest]) -> Mapping[str, int]:
    """Return what any alternative takes at least of each class."""
    sums = [demand(request) for request in requests]
    return {name: min(amounts[name] for amounts in sums) for name in sums[0]}


@dataclass(slots=True)
class _Attempt:
    """The consumers of a failure, placed one after the other.

    Attributes:
        rules: Those that concern them, by consumer.
    """

    stand: _Stand
    failure: _Failure
    queries: Mapping[CandidateRequest, Query]
    budget: Budget
    rules: dict[str, list[State]] = field(init=False)
    _taken: list[Gift] = field(default_factory=list)

    def __post_init__(self) -> None:
        gone = {consumer.uuid for consumer in self.failure.released}
        self.rules = self.stand.rules.states(gone)

    def give_back(self) -> None:
        """Let nothing be taken any more."""
        self.stand.scratch.give_back(self._taken)
        self._taken.clear()

    def unplaced(self) -> Iterator[str]:
        """Place everybody; yield who finds nothing, beside those before."""
        allowed = ~self.failure.gone
        for consumer in self.failure.placed_anew:
            self.budget.check()
            rules = self.rules.get(consumer.uuid, [])
            candidate = self._first(consumer, rules, allowed)
            if candidate is None:
                yield consumer.uuid
                continue
            self.stand.scratch.take(candidate.gifts)
            self._taken += candidate.gifts
            for rule in rules:
                rule.add(candidate.trees)

    def _first(
        self, consumer: PlannedConsumer, rules: Sequence[State], allowed: Mask
    ) -> Candidate | None:
        gone = self.failure.gone
        if rules:
            allowed = np.logical_and.reduce([allowed, *(rule.mask(0, None) for rule in rules)])

        def keeps(trees: Sequence[int]) -> bool:
            return not gone[list(trees)].any() and all(rule.keeps(trees, None) for rule in rules)

        for request in consumer.requests:
            with self.budget.scope():
                candidate = self.queries[request].first(allowed, keeps)
            if candidate is not None:
                return candidate
        return None
