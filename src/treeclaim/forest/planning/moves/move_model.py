# SPDX-License-Identifier: Apache-2.0
"""The integer program of a goal of moves (contract page 101, section 5).

Columns count equal consumers: those that leave equal allocations, and those that arrive at a place. The program
models the state after the last move and ignores the order of moves, so its optimum is a lower bound for every plan.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from treeclaim.forest.order.mixes.request_counts import RequestCounts, RequestPart
from treeclaim.forest.order.mixes.tree_counter import TreeCounter
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.planning.moves.integer_program import IntegerProgram, Solution
from treeclaim.forest.planning.moves.movers import (
    Cell,
    Mover,
    MoveSituation,
    Returns,
    flatten_cells,
    get_free_units,
    sum_by_cell,
)
from treeclaim.forest.planning.moves.places import PlaceLister
from treeclaim.forest.table.columns import GREATEST, Mask
from treeclaim.model.extension.planning import CapacityGoal, EvacuationGoal, MixGoal
from treeclaim.model.request import CandidateRequest

MOST_COLUMNS = 40_000
"""Columns of one program. HiGHS needs about ten seconds for this number with flat hosts."""

MOST_COLUMNS_OF_KEEP = 5_000
"""Columns for the goal `keep`. With 16,000 columns HiGHS exceeds a time limit of 13 seconds by 6 seconds, and finds
a worse solution than with a fifth of them."""

MOST_BYTES = 400_000_000
"""`IntegerProgram.nbytes` of one program: less than half of a child's memory."""


class ModelTooLargeError(Exception):
    """The program would exceed its limit of columns or bytes."""


class MoverKind(NamedTuple):
    """Consumers that may take each other's places.

    A consumer that a rule names, or with drawn amounts, is the single consumer of its kind. See `Mover` for `pools`.
    """

    alternatives: tuple[CandidateRequest, ...]
    pools: frozenset[int] | None
    single: Mover | None


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePlace:
    """A candidate for the consumers of a kind, with the number of its alternative.

    If the kind has a single consumer, `returned` are the returns to holds by its move.
    """

    alternative: int
    candidate: Candidate
    returned: Returns = frozenset()


Assignment = dict[MoverKind, tuple[list[Mover], list[CandidatePlace]]]
"""A solution by kind: the leaving consumers, and the taken places, repeated if several consumers take one. Any of the
consumers may take any of the places."""


class MoveModel:
    """The program of one goal, with the places in some trees or in all.

    Attributes:
        is_complete: Whether the program has every place of every movable consumer, so that its bounds hold for
            every plan.
        offset: The constant part of the objective; not for the goal `keep`. The whole objective is the number of
            moves, plus `most_moves` + 1 for each consumer by which the goal is missed.
    """

    def __init__(
        self, situation: MoveSituation, places: PlaceLister, trees: Mask | None, most_moves: int
    ) -> None:
        """Build the program for moves to and from the trees of a mask; None means all.

        Raises:
            ModelTooLargeError: if the program would be too large.
        """
        self._situation = situation
        self._places = places
        self._most_moves = most_moves
        self._trees = trees
        self._tree = situation.forest.order.tree
        self._program = IntegerProgram()
        self._groups: dict[int, tuple[MoverKind, Sequence[Mover]]] = {}
        """By column: equal consumers that leave."""
        self._arrivals: dict[int, tuple[MoverKind, CandidatePlace]] = {}
        self._uses: defaultdict[Cell, Counter[int]] = defaultdict(Counter)
        self._arriving_in: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._moving: set[Mover] = set()
        self.offset = 0
        self._objectives: list[dict[int, int]] = []
        """Objectives that are minimized, one after the other, before the number of moves."""
        self._fits: Counter[int] = Counter()
        """The columns of the count of the goals `fit` and `keep`, with their factors."""
        self._constant_fits = 0
        """The constant part of this count; for `keep`, that in trees without moves."""
        self._add_movers()
        self._add_rules()
        self._add_on_use()
        self._program.add_row(dict.fromkeys(self._groups, 1), at_most=most_moves)
        self._add_goal()
        self._add_room()
        self._check_size()
        self.is_complete = trees is None and places.is_complete

    # -- columns ---------------------------------------------------------------------------------

    def _may_be_moved(self, mover: Mover) -> bool:
        return (
            self._trees is None
            or mover.consumer.uuid in self._situation.misplaced
            or any(self._trees[tree] for tree in mover.occupied)
        )

    def _add_movers(self) -> None:
        kinds: defaultdict[MoverKind, defaultdict[frozenset[tuple[Cell, int]], list[Mover]]]
        kinds = defaultdict(lambda: defaultdict(list))
        for mover in filter(self._may_be_moved, self._situation.movable):
            is_single = mover.drawn_units or mover.consumer.uuid in self._situation.ruled_trees
            kind = MoverKind(mover.alternatives, mover.pools, mover if is_single else None)
            kinds[kind][frozenset(mover.allocations.items())].append(mover)
        for kind, equal in kinds.items():
            self._add_kind(kind, list(equal.values()))

    def _add_kind(self, kind: MoverKind, groups: Sequence[Sequence[Mover]]) -> None:
        balance: dict[int, int] = {}
        for movers in groups:
            self._moving.update(movers)
            column = self._program.add_column(len(movers), 1)
            self._groups[column] = kind, movers
            balance[column] = -1
            for cell, n in movers[0].relief.items():
                self._uses[cell][column] -= n
        total = sum(map(len, groups))
        for place, uses in self._list_places(kind, groups[0][0]):
            column = self._program.add_column(total)
            self._arrivals[column] = kind, place
            balance[column] = 1
            for cell, n in uses.items():
                self._uses[cell][column] += n
            rows = [row for row, _, _ in place.candidate.allocations]
            returned = [row for _, row in place.returned]
            for tree in {int(self._tree[row]) for row in (*rows, *returned)}:
                self._arriving_in[tree][column] += 1
            self._check_size()
        self._program.add_row(balance, at_least=0, at_most=0)

    def _list_places(
        self, kind: MoverKind, mover: Mover
    ) -> Iterator[tuple[CandidatePlace, Mapping[Cell, int]]]:
        """Yield the places of a kind, with the units that one consumer uses there."""
        for alternative, request in enumerate(kind.alternatives):
            for candidate in self._places.list_places(request, self._trees):
                is_current = (
                    kind.single and sum_by_cell(candidate.allocations) == mover.allocations
                )
                if is_current or not self._situation.may_take(mover, candidate):
                    continue
                units, returned = self._situation.compute_change(mover, candidate.allocations)
                uses = Counter(mover.relief)
                uses.update(self._situation.sum_used(flatten_cells(units)))
                yield CandidatePlace(alternative, candidate, returned), uses

    def _check_size(self) -> None:
        self._situation.budget.check()
        is_keep = isinstance(self._situation.call.goal, MixGoal)
        most = MOST_COLUMNS_OF_KEEP if is_keep else MOST_COLUMNS
        if len(self._program.upper) > most or self._program.nbytes > MOST_BYTES:
            raise ModelTooLargeError

    # -- rows ------------------------------------------------------------------------------------

    def _add_room(self) -> None:
        """Limit arrivals to the units that are free after all moves; an over-committed cell takes no arrival."""
        for cell, units in self._uses.items():
            if any(n > 0 for n in units.values()):
                self._add_use({}, [cell])

    def _add_use(self, factors: Mapping[int, int], cells: Iterable[Cell]) -> None:
        """Limit a sum of columns, plus the units that moves use of some cells, to the free units there."""
        factors, free_units = Counter(factors), 0
        for cell in cells:
            factors.update(self._uses.get(cell, {}))
            free_units += max(get_free_units(self._situation.forest, cell), 0)
        self._program.add_row(factors, at_most=free_units)

    def _add_rules(self) -> None:
        trees = self._situation.ruled_trees
        for rule, domains in self._situation.rules:
            before: Counter[int] = Counter()
            for uuid in rule.consumers & trees.keys():
                before.update(domains.find_containing(trees[uuid]))
            change: defaultdict[int, Counter[int]] = defaultdict(Counter)
            for column, (kind, _) in self._groups.items():
                if kind.single and kind.single.consumer.uuid in rule.consumers:
                    for domain in domains.find_containing(kind.single.trees):
                        change[domain][column] -= 1
            for column, (kind, place) in self._arrivals.items():
                if kind.single and kind.single.consumer.uuid in rule.consumers:
                    entered = domains.find_containing(place.candidate.trees)
                    self._program.add_row({column: 1}, at_most=min(len(entered), 1))
                    for domain in entered:
                        change[domain][column] += 1
            for domain, factors in change.items():
                most = max(rule.max_per_domain - before[domain], 0)
                self._program.add_row(factors, at_most=most)

    def _add_on_use(self) -> None:
        """Limit arrivals to one where a condition begins with the first use (contract page 102, section 3.2)."""
        for rows in self._situation.barred_on_use:
            arrivals = {
                column: 1
                for cell, units in self._uses.items()
                if cell[0] in rows
                for column, n in units.items()
                if n > 0 and column in self._arrivals
            }
            self._program.add_row(arrivals, at_most=1)

    # -- goals -----------------------------------------------------------------------------------

    def _add_goal(self) -> None:
        match self._situation.call.goal:
            case EvacuationGoal():
                self._add_empty()
            case CapacityGoal() as goal:
                self._add_fit(goal)
            case MixGoal() as goal:
                self._add_keep(goal)

    def _add_empty(self) -> None:
        """Let a misplaced consumer cost more than all moves together."""
        situation, penalty = self._situation, self._most_moves + 1
        for column, (_, (mover, *_)) in self._groups.items():
            if mover.consumer.uuid in situation.misplaced:
                self._program.costs[column] = 1 - penalty
        self.offset = penalty * len(situation.leaving)
        holds: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for column, (_, place) in self._arrivals.items():
            for hold, row in place.returned:
                if situation.cleared[row] and hold not in situation.misplaced:
                    holds[hold][column] += 1
        for columns in holds.values():
            returns = self._program.add_column(1, penalty)
            self._program.add_row({returns: -sum(columns.values()), **columns}, at_most=0)

    def _add_fit(self, goal: CapacityGoal) -> None:
        """Let a missing consumer of the request cost more than all moves together."""
        missing = self._program.add_column(goal.amount, self._most_moves + 1)
        self._constant_fits, self._fits[missing] = goal.amount, -1
        consumers = {missing: 1}
        for candidate in self._places.list_places(goal.request, self._trees):
            column = self._program.add_column(goal.amount)
            consumers[column] = 1
            for cell, n in self._situation.sum_used(candidate.allocations).items():
                self._uses[cell][column] += n
            self._check_size()
        self._program.add_row(consumers, at_least=goal.amount)

    def _add_keep(self, goal: MixGoal) -> None:
        trees = sorted(set(self._arriving_in).union(*(mover.occupied for mover in self._moving)))
        if goal.empty_trees:
            self._add_empty_trees(trees)
        for request, weight in goal.requests:
            counts = RequestCounts(self._situation.forest, request, self._situation.budget)
            counter = TreeCounter(self._situation.forest, [counts])
            most = counter.count_in_trees(self._places.forest)[:, 0]
            now = counter.count_in_trees(self._situation.forest)[:, 0]
            self._constant_fits += weight * int(now.sum() - now[trees].sum())
            for tree in trees:
                if most[tree]:
                    count = self._program.add_column(int(most[tree]))
                    self._fits[count] = weight
                    self._add_count(counts, tree, count)
        self._objectives.append({column: -weight for column, weight in self._fits.items()})

    def _add_empty_trees(self, trees: Iterable[int]) -> None:
        """Count a tree as empty if all consumers leave it and none arrives."""
        staying = {
            tree
            for mover in self._situation.movers.values()
            if mover not in self._moving
            for tree in mover.occupied
        }
        empty_trees: dict[int, int] = {}
        self._objectives.append(empty_trees)
        for tree in set(trees) - staying:
            is_empty = self._program.add_column(1)
            empty_trees[is_empty] = -1
            inside = [
                column
                for column, (_, (mover, *_)) in self._groups.items()
                if tree in mover.occupied
            ]
            count = sum(self._program.upper[column] for column in inside)
            self._program.add_row({is_empty: count, **dict.fromkeys(inside, -1)}, at_most=0)
            arrivals = self._arriving_in.get(tree)
            if arrivals:
                most = sum(self._program.upper[column] for column in arrivals)
                self._program.add_row({is_empty: most, **dict.fromkeys(arrivals, 1)}, at_most=most)

    def _add_count(self, counts: RequestCounts, tree: int, count: int) -> None:
        """Limit a column to the count of a request in a tree; the tests of the contract are rows."""
        for name, amount in counts.amounts.items():
            serving = counts.find_serving(name).list_in_tree(tree).tolist()
            self._add_use({count: amount}, [(row, name) for row in serving])
        for part in counts.parts:
            if not part.is_divided:
                self._add_part(part, tree, count)

    def _add_part(self, part: RequestPart, tree: int, count: int) -> None:
        """Limit a column by the contract's second test of a part."""
        served_factors = {count: part.copies}
        for row in part.serving.list_in_tree(tree).tolist():
            most = self._program.upper[count] * part.copies
            fits = self._program.add_column(min(most, GREATEST))
            served_factors[fits] = -1
            for name, amount in part.amounts.items():
                self._add_use({fits: amount}, [(row, name)])
            if part.are_apart:
                self._program.add_row({fits: 1, count: -1}, at_most=0)
        self._program.add_row(served_factors, at_most=0)
        self._check_size()

    # -- solving ---------------------------------------------------------------------------------

    def solve(self, end: float) -> Solution:
        """Optimize the goal, then the number of moves, until `end` by the monotonic clock.

        Returns:
            The best solution so far. For the goal `keep`, `bound` is that of the number of moves.
        """
        moves = dict(self._program.costs)
        are_optimal = True
        for objective in filter(None, self._objectives):
            self._program.costs = objective
            solution = self._program.solve(end)
            are_optimal &= solution.is_optimal
            if solution.values is None:
                return solution
            reached = sum(cost * solution.values[column] for column, cost in objective.items())
            self._program.add_row(objective, at_most=reached)
        self._program.costs = moves
        solution = self._program.solve(end)
        return Solution(
            solution.values, solution.bound, is_optimal=are_optimal and solution.is_optimal
        )

    def compute_fits(self, solution: Solution) -> int:
        """Return the `fits` of the goals `fit` and `keep` after the moves of a solution; 0 for other goals."""
        values = solution.values or ()
        fits = sum(factor * values[column] for column, factor in self._fits.items())
        return self._constant_fits + fits

    def read_assignment(self, solution: Solution) -> Assignment:
        """Return the assignment of a solution."""
        values = solution.values or ()
        assignment: Assignment = defaultdict(lambda: ([], []))
        for column, (kind, movers) in self._groups.items():
            assignment[kind][0].extend(movers[: values[column]])
        for column, (kind, place) in self._arrivals.items():
            assignment[kind][1].extend([place] * values[column])
        return assignment

    def exclude(self, solution: Solution) -> None:
        """Exclude a solution, and all with at least its arrivals that move no further group of consumers."""
        values = solution.values or ()
        factors = {column: 1 for column in self._arrivals if values[column]}
        total = sum(values[column] for column in factors)
        factors |= {column: -1 for column in self._groups if not values[column]}
        self._program.add_row(factors, at_most=total - 1)
