# SPDX-License-Identifier: Apache-2.0
"""Queries in one scratch Forest, and the remaining amounts of holds while consumers are placed there.

A consumer first takes the amounts of its holds, and only the remainder from the free units (contract page 100,
section 2). Held amounts count as used, so the remaining amounts of its holds become free while it is placed.
"""

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import Allocation
from treeclaim.forest.placing.candidate import Candidate, make_allocations, no_trees
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.rules import EligibleDomains, RuleState
from treeclaim.forest.placing.scratch import ScratchForest
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts, add_held
from treeclaim.model.extension.placing import PlacingRequest
from treeclaim.model.request import CandidateRequest


class QueryPool:
    """The queries in a scratch Forest, each created when it is first needed."""

    def __init__(
        self,
        scratch: ScratchForest,
        budget: Budget,
        most_bytes: int | None = None,
        *,
        ignores_units: bool = False,
    ) -> None:
        """Create an empty pool that drops its queries beyond `most_bytes`; see `Query` for `ignores_units`."""
        self._ignores_units = ignores_units
        self.scratch = scratch
        self._budget = budget
        self._most_bytes = most_bytes
        self._queries: dict[CandidateRequest, Query] = {}
        self._query_bytes = 0
        self._everywhere = ~no_trees(scratch.forest)

    @property
    def nbytes(self) -> int:
        """Return the estimated bytes of the queries and the scratch."""
        return self.scratch.nbytes + self._query_bytes

    def get_query(self, request: CandidateRequest) -> Query:
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

    def find_first(
        self,
        alternatives: Iterable[CandidateRequest],
        allowed: Mask | None = None,
        rules: Sequence[RuleState] = (),
        eligible: EligibleDomains = MappingProxyType({}),
        accepts: Callable[[Candidate], bool] = lambda _: True,
    ) -> tuple[int, Candidate] | None:
        """Return the number of the first alternative with a candidate, and its first candidate.

        The candidate is in allowed trees (None for all), and the rules permit it. `accepts` is a further condition that
        should rarely be false.
        """
        open_trees = allowed = self._everywhere if allowed is None else allowed
        for rule in rules:
            open_trees = open_trees & rule.find_open_trees(eligible)

        def permits(trees: Sequence[int]) -> bool:
            return bool(allowed[list(trees)].all()) and all(
                rule.permits(trees, eligible) for rule in rules
            )

        for number, request in enumerate(alternatives):
            query = self.get_query(request)
            # A search frees its memory before the next search.
            with self._budget.scope():
                candidate = query.find_first(open_trees, permits)
                if candidate is not None and not accepts(candidate):
                    accepted = (
                        each
                        for each in query.draw_candidates()
                        if permits(each.trees) and accepts(each)
                    )
                    candidate = next(accepted, None)
            if candidate is not None:
                return number, candidate
        return None


Holds = tuple[str, ...]
"""Uuids of holds, in the order of drawing."""


class HoldRoom:
    """A scratch whose consumers may draw from holds, with its queries.

    Queries are kept if placing starts again, because preparing a query takes much longer than placing a consumer.
    """

    def __init__(self, forest: Forest, budget: Budget) -> None:
        self._scratch = ScratchForest(forest)
        self._pools = {
            is_hold: QueryPool(self._scratch, budget, ignores_units=is_hold)
            for is_hold in (False, True)
        }
        """The queries, by whether the consumers will be holds."""
        self._held_amounts = forest.held_amounts
        self._remaining: dict[str, dict[str, dict[str, int]]] = {}
        """The remaining amounts of used holds, by hold, provider and class."""
        self._free_holds: Holds = ()
        """The holds whose remaining amounts are free now."""
        self._drawn_allocations: list[Allocation] = []

    def get_pool(self, request: PlacingRequest) -> QueryPool:
        """Return the queries for a request's consumers; the next call may change the free amounts."""
        self._free_only(request.from_holds)
        return self._pools[request.hold is not None]

    def _free_only(self, holds: Holds) -> None:
        """Free the remaining amounts of these holds, and of no further hold."""
        if holds != self._free_holds:
            self._scratch.take(self._list_remaining(self._free_holds))
            self._scratch.give_back(self._list_remaining(holds))
            self._free_holds = holds

    def _list_remaining(self, holds: Holds) -> list[Allocation]:
        forest = self._scratch.forest
        return [
            (row, name, amount)
            for hold in holds
            for row, name, amount in make_allocations(forest, self._get_remaining(hold))
            if amount
        ]

    def _get_remaining(self, hold: str) -> dict[str, dict[str, int]]:
        """Return the remaining amounts of a hold; the caller may change them."""
        if hold not in self._remaining:
            amounts = self._held_amounts.by_hold.get(hold, {})
            self._remaining[hold] = {uuid: dict(units) for uuid, units in amounts.items()}
        return self._remaining[hold]

    def place(self, allocations: Sequence[Allocation], holds: Holds = ()) -> None:
        """Place a consumer that first draws from some holds."""
        self._free_only(holds)
        self._scratch.place(allocations)
        for row, name, amount in allocations:
            missing = amount
            for hold in holds:
                units = self._get_remaining(hold).get(self._scratch.forest.uuid_of(row), {})
                part = min(units.get(name, 0), missing)
                if part:
                    units[name] -= part
                    missing -= part
            if missing < amount:
                self._drawn_allocations.append((row, name, amount - missing))

    def remove_placed(self) -> None:
        """Remove all placed consumers; their drawn amounts are held again."""
        self._free_only(())
        self._scratch.remove_placed()
        self._scratch.take(self._drawn_allocations)
        self._drawn_allocations.clear()
        self._remaining.clear()

    def find_held_without(self, holds: Holds) -> HeldAmounts:
        """Return the remaining amounts of all holds except these."""
        if self._held_amounts.everywhere is None:
            return self._held_amounts
        forest = self._scratch.forest
        used_holds = self._remaining.keys() - set(holds)
        before = self._held_amounts.of_holds(forest, {*holds, *used_holds})
        remaining = HeldAmounts(self._remaining).of_holds(forest, used_holds)
        return HeldAmounts(
            {}, add_held(add_held(self._held_amounts.everywhere, before, -1), remaining)
        )
