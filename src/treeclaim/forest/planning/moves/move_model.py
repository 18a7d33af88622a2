# SPDX-License-Identifier: Apache-2.0
"""The integer program of a goal of moves (contract page 101, section 5).

Equal consumers are counted together: `out` columns count the consumers that leave a set of allocations, `in`
columns count those that arrive at a place. A consumer with a rule, or with drawn amounts, has a column of its own
for each of its places. The program looks at the state after the last move and not at the order of moves, so its
optimum is a lower bound for every plan.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from treeclaim.forest.order.mixes.request_counts import Part, RequestCounts
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.planning.moves.board import Move
from treeclaim.forest.planning.moves.integer_program import IntegerProgram, Solution
from treeclaim.forest.planning.moves.picture import Cell, Mover, Picture, cells_of
from treeclaim.forest.planning.moves.places import Places
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.sums import GREATEST
from treeclaim.model.extension.moves import Empty, Fit, Goal, Keep
from treeclaim.model.request import CandidateRequest

MOST_COLUMNS = 40_000
"""Columns of one program. HiGHS takes about ten seconds for so many flat hosts."""

Kind = tuple[tuple[CandidateRequest, ...], frozenset[int] | None]
"""Alternatives and permitted sharing providers: consumers of one kind may take each other's places."""


class ModelTooLargeError(Exception):
    """The program would have more than `MOST_COLUMNS` columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A place for the consumers of a kind.

    Attributes:
        alternative: The alternative that it is a candidate of.
        candidate: The candidate.
    """

    alternative: int
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Assignment:
    """A solution as consumers and places, before an order is found.

    Attributes:
        leaving: By kind, the consumers that leave. Any of them may take any place of the kind.
        arriving: By kind, the places that are taken, each as often as it is taken.
        moves: The moves of consumers with columns of their own.
    """

    leaving: Mapping[Kind, Sequence[Mover]]
    arriving: Mapping[Kind, Sequence[Place]]
    moves: Sequence[Move]


@dataclass(slots=True)
class _Columns:
    """The columns of a program, by what they stand for."""

    out: dict[tuple[Kind, frozenset[tuple[Cell, int]]], int] = field(default_factory=dict)
    groups: dict[int, Sequence[Mover]] = field(default_factory=dict)
    arrivals: dict[int, tuple[Kind, Place]] = field(default_factory=dict)
    moves: dict[int, Move] = field(default_factory=dict)

    @property
    def leaving(self) -> list[int]:
        """Return the columns whose sum is the number of moves."""
        return [*self.groups, *self.moves]


class MoveModel:
    """The program of one goal, with the places in some trees or in all.

    Attributes:
        is_complete: Whether the program has every place of every movable consumer, so that its bounds hold for
            every plan.
        offset: The objective plus this number is the number of moves, plus `max_moves` + 1 for each consumer that
            the goal misses; not for the goal `keep`.
    """

    def __init__(
        self, picture: Picture, places: Places, goal: Goal, most_moves: int, trees: Mask | None
    ) -> None:
        """Build the program.

        Args:
            picture: The state at the beginning.
            places: The lists of places.
            goal: The goal.
            most_moves: The greatest number of moves.
            trees: Where consumers may go, and from where they may be moved away; None for all trees.

        Raises:
            ModelTooLargeError: if the program would have too many columns.
        """
        self._picture = picture
        self._places = places
        self._goal = goal
        self._most_moves = most_moves
        self._trees = trees
        self._program = IntegerProgram()
        self._columns = _Columns()
        self._uses: dict[Cell, Counter[int]] = {}
        self._arriving_in: dict[int, Counter[int]] = {}
        self._moving: set[Mover] = set()
        self._add_movers()
        self._add_rules()
        self._add_on_use()
        self._program.add_row(dict.fromkeys(self._columns.leaving, 1), at_most=most_moves)
        self.offset = 0
        self._missing: int | None = None
        self._empty: list[int] = []
        self._counted: list[tuple[int, int]] = []
        self._elsewhere = 0
        """What the goal `keep` counts in trees that no move touches."""
        match goal:
            case Empty():
                self._add_empty()
            case Fit():
                self._add_fit(goal)
            case Keep():
                self._add_keep(goal)
        self._add_room()
        self.is_complete = trees is None and places.are_all

    # -- columns ---------------------------------------------------------------------------------

    def _may_be_moved(self, mover: Mover) -> bool:
        return (
            self._trees is None
            or mover.consumer.uuid in self._picture.left_ones
            or any(self._trees[tree] for tree in mover.occupied)
        )

    def _add_movers(self) -> None:
        groups: dict[Kind, dict[frozenset[tuple[Cell, int]], list[Mover]]] = {}
        singles: list[Mover] = []
        for mover in self._picture.movable:
            if not self._may_be_moved(mover):
                continue
            if mover.drawn or mover in self._picture.rules_of:
                singles.append(mover)
                continue
            kind = mover.alternatives, mover.pools
            held = frozenset(mover.allocations.items())
            groups.setdefault(kind, {}).setdefault(held, []).append(mover)
        for kind, by_allocations in groups.items():
            self._add_kind(kind, by_allocations)
        for mover in singles:
            self._add_single(mover)

    def _add_kind(
        self, kind: Kind, groups: Mapping[frozenset[tuple[Cell, int]], Sequence[Mover]]
    ) -> None:
        picture, balance = self._picture, dict[int, int]()
        for held, movers in groups.items():
            self._moving.update(movers)
            column = self._program.add_column(len(movers), 1)
            self._columns.out[kind, held] = column
            self._columns.groups[column] = movers
            balance[column] = -1
            for cell, n in movers[0].relief.items():
                self._use(cell, column, -n)
        total = sum(map(len, groups.values()))
        for place in self._places_of(next(iter(groups.values()))[0]):
            column = self._program.add_column(total)
            self._columns.arrivals[column] = kind, place
            balance[column] = 1
            taken = picture.with_consumed(cells_of(place.candidate.allocations))
            for cell, n in taken.items():
                self._use(cell, column, n)
            self._arrive(column, place.candidate)
            self._check_size()
        self._program.add_row(balance, at_least=0, at_most=0)

    def _add_single(self, mover: Mover) -> None:
        mine: dict[int, int] = {}
        for place in self._places_of(mover):
            change = self._picture.change(mover, place.candidate.allocations)
            if cells_of(place.candidate.allocations) == mover.allocations:
                continue
            column = self._program.add_column(1, 1)
            self._columns.moves[column] = Move(mover, place.alternative, place.candidate, change)
            mine[column] = 1
            for cell, n in change.uses.items():
                self._use(cell, column, n)
            self._arrive(column, place.candidate)
            for _, position in change.returned:
                tree = int(self._picture.forest.order.tree[position])
                self._arriving_in.setdefault(tree, Counter())[column] += 1
            self._check_size()
        if mine:
            self._moving.add(mover)
        self._program.add_row(mine, at_most=1)

    def _places_of(self, mover: Mover) -> list[Place]:
        return [
            Place(alternative, candidate)
            for alternative, request in enumerate(mover.alternatives)
            for candidate in self._places.listed(request, self._trees)
            if self._picture.may_take(mover, candidate)
        ]

    def _check_size(self) -> None:
        self._picture.budget.check()
        if len(self._program.upper) > MOST_COLUMNS:
            raise ModelTooLargeError

    def _use(self, cell: Cell, column: int, units: int) -> None:
        self._uses.setdefault(cell, Counter())[column] += units

    def _arrive(self, column: int, candidate: Candidate) -> None:
        tree = self._picture.forest.order.tree
        for at in {int(tree[position]) for position, _, _ in candidate.allocations}:
            self._arriving_in.setdefault(at, Counter())[column] += 1

    # -- rows ------------------------------------------------------------------------------------

    def _add_room(self) -> None:
        """No arrival exceeds what is free in the end; where too much is used already, nothing arrives."""
        for cell, units in self._uses.items():
            if any(n > 0 for n in units.values()):
                self._program.add_row(units, at_most=max(self._picture.free_of(cell), 0))

    def _add_rules(self) -> None:
        for rule in self._picture.rules:
            before: Counter[int] = Counter()
            for member in rule.members:
                before.update(rule.domains.containing(member.trees))
            change: dict[int, Counter[int]] = {}
            for column, move in self._columns.moves.items():
                if move.mover not in rule.members:
                    continue
                domains = rule.domains.containing(move.candidate.trees)
                if not domains:
                    self._program.add_row({column: 1}, at_most=0)
                for domain in domains:
                    change.setdefault(domain, Counter())[column] += 1
                for domain in rule.domains.containing(move.mover.trees):
                    change.setdefault(domain, Counter())[column] -= 1
            for domain, factors in change.items():
                at_most = max(rule.most - before[domain], 0)
                self._program.add_row(factors, at_most=at_most)

    def _add_on_use(self) -> None:
        """Only one consumer arrives where a condition begins with the first use."""
        for key, positions in self._picture.begin_on_use:
            arrivals = {
                column: 1
                for cell, units in self._uses.items()
                if cell[0] in positions
                for column, n in units.items()
                if n > 0 and not self._tolerates(column, key)
            }
            self._program.add_row(arrivals, at_most=1)

    def _tolerates(self, column: int, key: str) -> bool:
        if column in self._columns.arrivals:
            (alternatives, _), place = self._columns.arrivals[column]
            request = alternatives[place.alternative]
        else:
            move = self._columns.moves[column]
            request = move.mover.alternatives[move.alternative]
        return any(
            group.conditions.tolerates is None or key in group.conditions.tolerates
            for group in request.groups
        )

    # -- goals -----------------------------------------------------------------------------------

    def _add_empty(self) -> None:
        """Each consumer that is left costs more than all moves together."""
        dear = self._most_moves + 1
        for column, movers in self._columns.groups.items():
            if movers[0].consumer.uuid in self._picture.left_ones:
                self._program.costs[column] = 1 - dear
        left = self._picture.left_ones
        self.offset = dear * sum(mover.consumer.uuid in left for mover in self._picture.movable)
        holds: dict[str, Counter[int]] = {}
        for column, move in self._columns.moves.items():
            if move.mover.consumer.uuid in self._picture.left_ones:
                self._program.costs[column] = 1 - dear
            for hold, position in move.change.returned:
                if self._picture.cleared[position] and hold not in self._picture.left_ones:
                    holds.setdefault(hold, Counter())[column] += 1
        for columns in holds.values():
            returns = self._program.add_column(1, dear)
            self._program.add_row({returns: -sum(columns.values()), **columns}, at_most=0)

    def _add_fit(self, goal: Fit) -> None:
        """Each missing consumer of the request costs more than all moves together."""
        dear = self._most_moves + 1
        self._missing = self._program.add_column(goal.amount, dear)
        enough = {self._missing: 1}
        for candidate in self._places.listed(goal.request, self._trees):
            column = self._program.add_column(goal.amount)
            enough[column] = 1
            taken = self._picture.with_consumed(cells_of(candidate.allocations))
            for cell, n in taken.items():
                self._use(cell, column, n)
            self._check_size()
        self._program.add_row(enough, at_least=goal.amount)

    def _add_keep(self, goal: Keep) -> None:
        trees = sorted(self._touched_trees())
        if goal.empty_trees:
            self._add_empty_trees(trees)
        for request, weight in goal.requests:
            counts = RequestCounts(self._picture.forest, request, self._picture.budget)
            most = counts.in_trees(self._places.forest)
            now = counts.in_trees(self._picture.forest)
            self._elsewhere += weight * int(now.sum() - now[trees].sum())
            for tree in trees:
                if most[tree]:
                    self._add_count(counts, tree, int(most[tree]), weight)

    def _touched_trees(self) -> set[int]:
        touched = set(self._arriving_in)
        for movers in self._columns.groups.values():
            touched |= movers[0].occupied
        for move in self._columns.moves.values():
            touched |= move.mover.occupied
        return touched

    def _add_empty_trees(self, trees: Iterable[int]) -> None:
        """A tree is empty if all consumers leave it and none arrives."""
        picture = self._picture
        staying = {
            tree
            for mover in picture.movers.values()
            if mover not in self._moving
            for tree in mover.occupied
        }
        for tree in set(trees) - staying:
            is_empty = self._program.add_column(1)
            self._empty.append(is_empty)
            leaving: Counter[int] = Counter()
            count = 0
            for column, movers in self._columns.groups.items():
                if tree in movers[0].occupied:
                    leaving[column] -= 1
                    count += len(movers)
            inside = {
                move.mover for move in self._columns.moves.values() if tree in move.mover.occupied
            }
            for column, move in self._columns.moves.items():
                if move.mover in inside:
                    leaving[column] -= 1
            count += len(inside)
            if count:
                self._program.add_row({is_empty: count, **leaving}, at_most=0)
            arrivals = self._arriving_in.get(tree, Counter())
            if arrivals:
                most = sum(self._program.upper[column] for column in arrivals)
                self._program.add_row({is_empty: most, **dict.fromkeys(arrivals, 1)}, at_most=most)

    def _add_count(self, counts: RequestCounts, tree: int, most: int, weight: int) -> None:
        """Add the count of a request in a tree as a column with the tests of the contract as rows."""
        count = self._program.add_column(most)
        self._counted.append((count, weight))
        for name, amount in counts.amounts.items():
            factors: Counter[int] = Counter({count: amount})
            free = 0
            for position in counts.serving(name, tree).tolist():
                cell = position, name
                free += max(self._picture.free_of(cell), 0)
                factors.update(self._uses.get(cell, {}))
            self._program.add_row(factors, at_most=free)
        for part in counts.parts:
            if not part.is_divided:
                self._add_part(part, tree, count, most)

    def _add_part(self, part: Part, tree: int, count: int, most: int) -> None:
        """Let a part be served as often as its providers can serve it together."""
        served = {count: part.copies}
        for position in part.served.of_tree(tree).tolist():
            fits = self._program.add_column(min(most * part.copies, GREATEST))
            served[fits] = -1
            for name, amount in part.amounts.items():
                cell = position, name
                factors = Counter({fits: amount})
                factors.update(self._uses.get(cell, {}))
                self._program.add_row(factors, at_most=max(self._picture.free_of(cell), 0))
            if part.are_apart:
                self._program.add_row({fits: 1, count: -1}, at_most=0)
        self._program.add_row(served, at_most=0)
        self._check_size()

    # -- solving ---------------------------------------------------------------------------------

    def solve(self, seconds: float) -> Solution:
        """Solve the program: the goal first, then the number of moves.

        Returns:
            The solution. For the goal `keep`, `is_optimal` and `bound` are about the number of moves.
        """
        if not isinstance(self._goal, Keep):
            return self._program.solve(seconds)
        moves = dict(self._program.costs)
        solution = Solution(None, 0.0, is_optimal=False)
        are_optimal = True
        for objective in (dict.fromkeys(self._empty, -1), {c: -w for c, w in self._counted}):
            if not objective:
                continue
            self._program.costs = objective
            solution = self._program.solve(seconds)
            are_optimal &= solution.is_optimal
            if solution.values is None:
                return solution
            reached = sum(cost * solution.values[column] for column, cost in objective.items())
            self._program.add_row(objective, at_most=reached)
        self._program.costs = moves
        solution = self._program.solve(seconds)
        return Solution(
            solution.values, solution.bound, is_optimal=are_optimal and solution.is_optimal
        )

    def promise(self, solution: Solution) -> int:
        """Return what the goals `fit` and `keep` count after the moves of a solution; 0 for other goals."""
        values = solution.values or ()
        if isinstance(self._goal, Fit) and self._missing is not None:
            return self._goal.amount - values[self._missing]
        kept = sum(weight * values[column] for column, weight in self._counted)
        return self._elsewhere + kept

    def assignment(self, solution: Solution) -> Assignment:
        """Return the consumers and places of a solution."""
        values = solution.values or ()
        leaving: dict[Kind, list[Mover]] = {}
        arriving: dict[Kind, list[Place]] = {}
        for (kind, _), column in self._columns.out.items():
            movers = self._columns.groups[column][: values[column]]
            leaving.setdefault(kind, []).extend(movers)
        for column, (kind, place) in self._columns.arrivals.items():
            arriving.setdefault(kind, []).extend([place] * values[column])
        moves = [move for column, move in self._columns.moves.items() if values[column]]
        return Assignment(leaving, arriving, moves)

    @property
    def are_exclusions_exact(self) -> bool:
        """Return whether `exclude` excludes no other solutions: if no consumers are counted together."""
        return all(len(movers) == 1 for movers in self._columns.groups.values())

    def exclude(self, solution: Solution) -> None:
        """Exclude a solution unless other consumers move too."""
        values = solution.values or ()
        factors: dict[int, int] = {}
        total = 0
        for column in (*self._columns.arrivals, *self._columns.moves):
            if values[column]:
                factors[column] = 1
                total += values[column]
        for column in self._columns.leaving:
            if not values[column] and column not in factors:
                factors[column] = -1
        self._program.add_row(factors, at_most=total - 1)
