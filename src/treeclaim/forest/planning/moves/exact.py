# SPDX-License-Identifier: Apache-2.0
"""The best plan of a small world, with proof.

Moves are decided one after the other, and only where something is still wrong: a provider that
a consumer moves to is too full, a rule is broken, the goal is not reached. One of the consumers that could repair
that must move, so these are tried, one after the other; one that was tried stays from then on. A legal
order of the moves is looked for at the end; if there is none, others must make room meanwhile.
"""

from collections.abc import Iterator, Mapping, Sequence

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.moves.aims import Aim, State, Value
from treeclaim.forest.planning.moves.board import Move
from treeclaim.forest.planning.moves.picture import Cell, Mover, Picture, closed, common


class Exact:
    """Searches for plans.

    Attributes:
        plan: The best one found, in a legal order.
        value: What it is worth.
        fewest: A proven bound of how many moves reach the goal; None where nothing is proven yet.
    """

    def __init__(
        self, picture: Picture, options: Mapping[Mover, Sequence[Move]], aim: Aim, budget: Budget
    ) -> None:
        """Begin with the plan to move nobody."""
        self._picture = picture
        self._options = options
        self._aim = aim
        self._budget = budget
        self._state = State(sorted(options, key=lambda mover: len(options[mover])))
        self._free: dict[Cell, int] = {}
        self._is_cut = False
        self.plan: Sequence[Move] = ()
        self.value = aim.value(self._state)
        self.fewest: int | None = None

    def search(self, most: int) -> None:
        """Find a best plan with at most this many moves, and of those one with the fewest moves."""
        most = min(most, len(self._options))
        reached = self._aim.reached
        if reached is not None and self._aim.ceiling(self._state, most) >= reached:
            for moves in range(most + 1):
                self.fewest = moves
                if self._finds(moves, _below(reached)):
                    return
                if not self._is_cut:
                    break
        self.fewest = most + 1
        while self._finds(most, self.value):
            pass
        for moves in range(len(self.plan)):
            if self._finds(moves, _below(self.value)):
                return

    def _finds(self, moves: int, floor: Value) -> bool:
        """Keep a plan with at most this many moves that is worth more than a value, if there is one."""
        self._is_cut = False
        return self._search(moves, floor)

    def _search(self, moves: int, floor: Value) -> bool:
        self._budget.check()
        state = self._state
        conflict = self._conflict()
        if conflict is None:
            value = self._aim.value(state)
            if value > floor:
                order = self._order()
                if order is not None:
                    self.plan, self.value = order, value
                    return True
                conflict = list(state.undecided)
            else:
                conflict = self._aim.wanted(state, floor)
        if not conflict or self._aim.ceiling(state, len(state.undecided)) <= floor:
            return False
        if self._aim.ceiling(state, moves) <= floor or not moves:
            self._is_cut = True
            return False
        return self._tries(conflict, moves, floor)

    def _tries(self, conflict: Sequence[Mover], moves: int, floor: Value) -> bool:
        """Let any of some movers move; one that was tried stays."""
        state = self._state
        stay: list[Mover] = []
        try:
            for mover in conflict:
                for move in self._options[mover]:
                    state.decide(move)
                    is_solved = self._search(moves - 1, floor)
                    state.take_back(move)
                    if is_solved:
                        return True
                del state.undecided[mover]
                stay.append(mover)
        finally:
            state.undecided.update(dict.fromkeys(stay))
        return False

    # -- what is wrong yet -----------------------------------------------------------------------

    def _conflict(self) -> Sequence[Mover] | None:
        """Return movers, one of which must move whatever else does; none if that cannot help.

        Returns:
            None if nothing is wrong.
        """
        least: Sequence[Mover] | None = None
        for some in (*self._overfull(), *self._broken()):
            if least is None or len(some) < len(least):
                least = some
        return least

    def _overfull(self) -> Iterator[Sequence[Mover]]:
        state = self._state
        for cell, arrivals in state.arrivals.items():
            if not arrivals:
                continue
            missing = state.uses[cell] - self._free_of(cell)
            if missing > 0:
                reliefs = {mover: _relief(mover, cell) for mover in state.undecided}
                if sum(reliefs.values()) < missing:
                    yield ()
                    return
                yield [mover for mover, relief in reliefs.items() if relief > 0]

    def _broken(self) -> Iterator[Sequence[Mover]]:
        """Yield those that could repair rules broken by the last move."""
        state = self._state
        places = {mover: move.candidate.trees for mover, move in state.moved.items()}
        for rule in self._picture.rules:
            moved = [mover for mover in rule.members if mover in places]
            if not moved:
                continue
            undecided = [mover for mover in rule.members if mover in state.undecided]
            now = {mover: places.get(mover, mover.trees) for mover in rule.members}
            if rule.most is None:
                if not common(rule.domains, now.values()):
                    yield undecided
                continue
            for mover in moved:
                domains = set(rule.domains.containing(now[mover]))
                if not domains:
                    yield ()
                    return
                for domain in domains - set(rule.domains.containing(mover.trees)):
                    inside = [
                        member for member in now if domain in rule.domains.containing(now[member])
                    ]
                    if len(inside) > rule.most:
                        yield [member for member in inside if member in state.undecided]

    def _free_of(self, cell: Cell) -> int:
        """Return what was free at the beginning."""
        if cell not in self._free:
            forest = self._picture.forest
            columns = forest.class_inventories(cell[1])
            index = columns.index_of(int(forest.order.row[cell[0]]))
            self._free[cell] = int(columns.free.values[index])
        return self._free[cell]

    # -- in which order --------------------------------------------------------------------------

    def _order(self) -> Sequence[Move] | None:
        """Return the moves in an order in which each is legal; None if there is none."""
        moves = list(self._state.moved.values())
        failed: set[int] = set()
        used: dict[Cell, int] = {}
        places: dict[Mover, Sequence[int]] = {}
        order: list[Move] = []

        def goes_on(made: int) -> bool:
            if made in failed:
                return False
            if len(order) == len(moves):
                return True
            self._budget.check()
            for number, move in enumerate(moves):
                if made >> number & 1 or not self._is_legal(move, used, places):
                    continue
                order.append(move)
                places[move.mover] = move.candidate.trees
                _add(used, move.change.uses, 1)
                if goes_on(made | 1 << number):
                    return True
                order.pop()
                del places[move.mover]
                _add(used, move.change.uses, -1)
            failed.add(made)
            return False

        return order if goes_on(0) else None

    def _is_legal(
        self, move: Move, used: Mapping[Cell, int], places: Mapping[Mover, Sequence[int]]
    ) -> bool:
        at_once = self._picture.call.both_at_once
        for cell, n in move.units.items():
            given_back = 0 if at_once else move.mover.uses.get(cell, 0)
            if self._free_of(cell) - used.get(cell, 0) + given_back < n:
                return False
        for rule in self._picture.rules_of.get(move.mover, ()):
            if rule.most is not None:
                domains = set(rule.domains.containing(move.candidate.trees))
                if not domains or domains & closed(rule, move.mover, places):
                    return False
        return True


def _add(used: dict[Cell, int], units: Mapping[Cell, int], sign: int) -> None:
    for cell, n in units.items():
        used[cell] = used.get(cell, 0) + sign * n


def _relief(mover: Mover, cell: Cell) -> int:
    """Return how much a mover may give up somewhere."""
    return mover.relief.get(cell, 0)


def _below(value: Value) -> Value:
    """Return the greatest value that is less."""
    return *value[:-1], value[-1] - 1
