# SPDX-License-Identifier: Apache-2.0
"""Room made where those that leave need room made for them in turn, and so on.

A consumer takes a place without room; what is missing there is owed. Of the consumers where most is
owed, one moves to where this adds least to what is owed, until nothing is owed anywhere. That is a beam
search: of all states with the same number of moves, the few that owe least go on. A legal order of the moves
is found at the end: as those chosen later make room for each, mostly the last goes first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.clearing import Clearing, Option
from treeclaim.forest.planning.moves.owing import Owing, Places, Units
from treeclaim.forest.planning.moves.picture import Mover
from treeclaim.forest.table.columns import Mask
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.request import CandidateRequest

_BEAMS = (
    (0.0, 40),
    (0.4, 15),
    (0.2, 15),
    (-0.25, 15),
    (0.6, 15),
    (0.1, 15),
    (-0.5, 15),
)
"""Beams that are tried: how much more a class counts of which little is free, and how many states go on."""

_OF_A_MOVER = 5
"""Places that are tried for each consumer that may go."""

_OF_A_ROOT = 8
"""States that go on from one place that is to be cleared."""

_PATIENCE = 10
"""Moves after which a beam is given up if nothing owes less by then."""


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """Somebody takes a place by an alternative of its request."""

    mover: Mover
    alternative: int
    option: Option


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Some moves, whether or not there is room for them.

    Attributes:
        root: The place that is to be cleared; None if a consumer is to move.
        first: Who has to move, before anybody else.
        steps: The moves.
        change: What is free more than at the beginning.
        debts: What is owed.
    """

    root: Option | None
    first: Mover | None = None
    steps: tuple[_Step, ...] = ()
    change: Units = field(default_factory=dict)
    debts: Units = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _Idea:
    """What may be done next in a state, and what is owed then."""

    owed: float
    state: _State
    step: _Step
    used: Sequence[Units]

    def state_after(self, owing: Owing) -> _State:
        """Do it."""
        state = self.state
        change, debts = state.change, state.debts
        for used in self.used:
            change, debts = owing.after(change, debts, used)
        return _State(state.root, None, (*state.steps, self.step), change, debts)


class Chains:
    """Looks for plans from where everybody is on a board."""

    def __init__(self, board: Board, clearing: Clearing) -> None:
        """Begin with what is free now."""
        self._board = board
        self._clearing = clearing
        self._owing = Owing(board, clearing)
        self._places: dict[CandidateRequest, Places] = {}
        self._kinds: dict[int, Sequence[Sequence[Mover]]] = {}
        self._masks: dict[tuple[Mover, int], Mask] = {}

    def clear(self, options: Sequence[Option], most: int) -> Option | None:
        """Clear one of some places with at most this many moves; return it, or None if none was cleared."""
        places = self._owing.places(options)
        roots = []
        for number, option in enumerate(options):
            change, debts = self._owing.after({}, {}, places.units(number))
            roots.append(_State(option, change=change, debts=debts))
        best = self._best(roots, most)
        return None if best is None else best.root

    def settle(self, mover: Mover, most: int) -> bool:
        """Move a consumer, with at most this many moves; tell whether it was moved."""
        return self._best([_State(None, mover)], most) is not None

    def _best(self, roots: Sequence[_State], most: int) -> _State | None:
        """Make the moves of the shortest plan that any beam finds."""
        board, before = self._board, len(self._board.moves)
        best: _State | None = None
        for power, width in _BEAMS:
            self._owing.weigh(power)
            try:
                state = self._beam(roots, width, most)
            except SearchGivenUpError:
                if best is None:
                    raise
                break
            if state is not None:
                best, most = state, len(state.steps) - 1
                board.undo(before)
        if best is not None:
            self._make(best.steps)
        return best

    # -- a beam ----------------------------------------------------------------------------------

    def _beam(self, roots: Sequence[_State], width: int, most: int) -> _State | None:
        level = sorted(roots, key=lambda state: self._owing.worth(state.debts))[:width]
        least, patience = np.inf, _PATIENCE
        for _ in range(most):
            ideas = [idea for state in level for idea in self._ideas(state)]
            ideas.sort(key=lambda idea: idea.owed)
            level = []
            for state in self._different(ideas, is_one=len(roots) == 1):
                if not state.debts and self._make(state.steps):
                    return state
                level.append(state)
                if len(level) == width:
                    break
            if not level or self._clearing.is_over():
                return None
            owed = ideas[0].owed
            patience = patience - 1 if owed >= least else _PATIENCE
            if not patience:
                return None
            least = min(least, owed)
        return None

    def _different(self, ideas: Iterable[_Idea], *, is_one: bool) -> Iterator[_State]:
        """Yield what ideas lead to, each state once, and few from each of many beginnings."""
        known: set[frozenset[tuple[int, int]]] = set()
        counts: Counter[Option | None] = Counter()
        for idea in ideas:
            root = idea.state.root
            if counts[root] == _OF_A_ROOT and not is_one:
                continue
            state = idea.state_after(self._owing)
            key = frozenset(state.change.items())
            if key not in known:
                known.add(key)
                counts[root] += 1
                yield state

    def _ideas(self, state: _State) -> Iterator[_Idea]:
        """Yield the best places for the next consumer, or for each kind of those where most is owed."""
        owing, avoided = self._owing, -1
        movers = [] if state.first is None else [state.first]
        if state.debts:
            avoided = max(state.debts, key=lambda at: state.debts[at] * owing.weights[at])
            movers = self._movers_at(avoided, state)
        for mover in movers:
            self._board.budget.check()
            freed = owing.numbered({cell: -n for cell, n in mover.relief.items()})
            change, debts = owing.after(state.change, state.debts, freed)
            for alternative, request in enumerate(mover.alternatives):
                places = self._places_of(request)
                scores = owing.worth(debts) + owing.added(places, change, debts)
                scores[(places.cells == avoided).any(axis=1)] = np.inf
                scores[~self._may_go(mover, alternative, places)] = np.inf
                for number in np.argsort(scores, kind="stable")[:_OF_A_MOVER].tolist():
                    if scores[number] < np.inf:
                        step = _Step(mover, alternative, places.options[number])
                        used = freed, places.units(number)
                        yield _Idea(float(scores[number]), state, step, used)

    def _movers_at(self, at: int, state: _State) -> list[Mover]:
        """Return one of each kind of those that hold something of a cell and have not moved."""
        if at not in self._kinds:
            kinds: dict[object, list[Mover]] = {}
            for mover in self._clearing.going(self._owing.cell(at)):
                alike = mover.alternatives, frozenset(mover.uses.items()), mover.pools
                is_alone = mover.drawn or mover in self._board.picture.rules_of
                kinds.setdefault(mover if is_alone else alike, []).append(mover)
            self._kinds[at] = list(kinds.values())
        moved = {step.mover for step in state.steps}
        rest = ([mover for mover in kind if mover not in moved] for kind in self._kinds[at])
        return [kind[0] for kind in rest if kind]

    def _places_of(self, request: CandidateRequest) -> Places:
        if request not in self._places:
            self._places[request] = self._owing.places(self._clearing.options(request))
        return self._places[request]

    def _may_go(self, mover: Mover, alternative: int, places: Places) -> Mask:
        """Return which places the goal and rules leave to a mover, as they are at the beginning."""
        picture = self._board.picture
        if mover not in picture.rules_of and not picture.sharing.any():
            return np.ones(len(places.options), dtype=np.bool_)
        key = mover, alternative
        if key not in self._masks:
            allowed = [self._board.may_go(mover, option.candidate) for option in places.options]
            self._masks[key] = np.array(allowed, dtype=np.bool_)
        return self._masks[key]

    # -- the order -------------------------------------------------------------------------------

    def _make(self, steps: Sequence[_Step]) -> bool:
        """Make moves in an order in which each is legal; tell whether one was found."""
        board, before = self._board, len(self._board.moves)
        rest = list(reversed(steps))
        while rest:
            step = next((step for step in rest if self._is_legal(step)), None)
            if step is None:
                break
            rest.remove(step)
            board.move(step.mover, step.alternative, step.option.candidate)
        if rest or not board.keeps_rules():
            board.undo(before)
            return False
        return True

    def _is_legal(self, step: _Step) -> bool:
        mover, board = step.mover, self._board
        at_once = board.picture.call.both_at_once
        allocations = (
            [] if at_once else [(at, name, n) for (at, name), n in mover.allocations.items()]
        )
        board.take([(at, name, -n) for at, name, n in allocations])
        has_room = not self._clearing.missing(step.option.needs)
        board.take(allocations)
        return has_room and board.may_go(mover, step.option.candidate)
