# SPDX-License-Identifier: Apache-2.0
"""Queries in one scratch Forest, and the room beside the consumers of a call that are placed there.

A consumer first takes the amounts of its holds, which already count as used, and only the remainder
from the free units (contract page 100, section 2). While consumers with some holds are placed, what these have left
is therefore free.
"""

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import Allocation
from treeclaim.forest.placing.candidate import Candidate, allocations_at, no_trees
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.rules import EligibleDomains, RuleState
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts, add_held
from treeclaim.model.extension.placing import PlacingRequest
from treeclaim.model.request import CandidateRequest


class QueryPool:
    """The queries in a scratch Forest, each made when it is first needed.

    Attributes:
        scratch: Where they search.
    """

    def __init__(
        self,
        scratch: Scratch,
        budget: Budget,
        most_bytes: int | None = None,
        *,
        ignores_units: bool = False,
    ) -> None:
        """Create an empty pool.

        Args:
            scratch: The scratch Forest.
            budget: The budget of all queries together.
            most_bytes: The pool drops all queries that exceed this; None for the budget's memory.
            ignores_units: See `Query`.
        """
        self._ignores_units = ignores_units
        self.scratch = scratch
        self._budget = budget
        self._most_bytes = most_bytes
        self._queries: dict[CandidateRequest, Query] = {}
        self._query_bytes = 0
        self._everywhere = ~no_trees(scratch.forest)

    @property
    def nbytes(self) -> int:
        """Return the bytes that the queries and the scratch take, about."""
        return self.scratch.nbytes + self._query_bytes

    def query(self, request: CandidateRequest) -> Query:
        """Return the query of a request."""
        query = self._queries.get(request)
        if query is None:
            if self._most_bytes is not None and self.nbytes > self._most_bytes:
                self._queries.clear()
                self._query_bytes = 0
            query = Query(self.scratch, request, self._budget, ignores_units=self._ignores_units)
            self._query_bytes += query.nbytes
            self._queries[request] = query
        return query

    def first(
        self,
        alternatives: Iterable[CandidateRequest],
        allowed: Mask | None = None,
        rules: Sequence[RuleState] = (),
        eligible: EligibleDomains = MappingProxyType({}),
        accepts: Callable[[Candidate], bool] = lambda _: True,
    ) -> tuple[int, Candidate] | None:
        """Return the first candidate of the first request with a candidate, and the number of that request.

        Args:
            alternatives: The requests.
            allowed: Trees that a candidate may use; None for all.
            rules: Rules for the candidate.
            eligible: The domains that count for rules on skew.
            accepts: A further condition on candidates; rarely false.
        """
        alone = allowed = self._everywhere if allowed is None else allowed
        for rule in rules:
            alone = alone & rule.open_trees(eligible)

        def keeps(trees: Sequence[int]) -> bool:
            return bool(allowed[list(trees)].all()) and all(
                rule.keeps(trees, eligible) for rule in rules
            )

        for number, request in enumerate(alternatives):
            query = self.query(request)
            # Searches that are repeated for each consumer are not in memory at the same time.
            with self._budget.scope():
                candidate = query.first(alone, keeps)
                if candidate is not None and not accepts(candidate):
                    every = (
                        each for each in query.candidates() if keeps(each.trees) and accepts(each)
                    )
                    candidate = next(every, None)
            if candidate is not None:
                return number, candidate
        return None


Holds = tuple[str, ...]
"""Uuids of holds, in the order in which they are drawn from."""


class Room:
    """The room, and the queries in it.

    Preparing a query takes much longer than placing a consumer. Where placing starts again with
    another domain, amounts are released, and the queries stay.
    """

    def __init__(self, forest: Forest, budget: Budget) -> None:
        """Begin with the amounts that are used, and held, in a Forest, which is not changed."""
        self._scratch = Scratch(forest)
        self._pools = {
            is_hold: QueryPool(self._scratch, budget, ignores_units=is_hold)
            for is_hold in (False, True)
        }
        """The queries, by whether the consumers will be holds."""
        self._held = forest.held
        self._left: dict[str, dict[str, dict[str, int]]] = {}
        """The present amounts of the holds that were lent."""
        self._lent: Holds = ()
        self._drawn: list[Allocation] = []

    def pool(self, request: PlacingRequest) -> QueryPool:
        """Return the queries of consumers, to be used before others are asked for."""
        self._lend(request.from_holds)
        return self._pools[request.hold is not None]

    def _lend(self, holds: Holds) -> None:
        """Make free what some holds have left, and nothing that others have."""
        if holds != self._lent:
            self._scratch.take(self._left_of_each(self._lent))
            self._scratch.give_back(self._left_of_each(holds))
            self._lent = holds

    def _left_of_each(self, holds: Holds) -> list[Allocation]:
        """Return what some holds have left."""
        forest = self._scratch.forest
        left = [each for hold in holds for each in allocations_at(forest, self._left_of(hold))]
        return [(row, name, amount) for row, name, amount in left if amount]

    def _left_of(self, hold: str) -> dict[str, dict[str, int]]:
        """Return what a hold has left, to be changed."""
        if hold not in self._left:
            amounts = self._held.by_hold.get(hold, {})
            self._left[hold] = {uuid: dict(units) for uuid, units in amounts.items()}
        return self._left[hold]

    def place(self, allocations: Sequence[Allocation], holds: Holds = ()) -> None:
        """Place a consumer that first takes the amounts of some holds; these cannot be drawn again."""
        self._lend(holds)
        self._scratch.place(allocations)
        for row, name, amount in allocations:
            missing = amount
            for hold in holds:
                units = self._left_of(hold).get(self._scratch.forest.uuid_of(row), {})
                part = min(units.get(name, 0), missing)
                if part:
                    units[name] -= part
                    missing -= part
            if missing < amount:
                self._drawn.append((row, name, amount - missing))

    def remove_placed(self) -> None:
        """Remove all consumers that were placed; what they drew is held again."""
        self._lend(())
        self._scratch.remove_placed()
        self._scratch.take(self._drawn)
        self._drawn.clear()
        self._left.clear()

    def held(self, holds: Holds) -> HeldAmounts:
        """Return what all holds but some have left by now."""
        if self._held.everywhere is None:
            return self._held
        forest = self._scratch.forest
        others = self._left.keys() - set(holds)
        before = self._held.of_holds(forest, {*holds, *others})
        left = HeldAmounts(self._left).of_holds(forest, others)
        return HeldAmounts({}, add_held(add_held(self._held.everywhere, before, -1), left))
