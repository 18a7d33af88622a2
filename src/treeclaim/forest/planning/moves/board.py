# SPDX-License-Identifier: Apache-2.0
"""Orders the moves of a solution so that each is legal after the previous moves, and explains misplaced consumers.

See contract page 101, section 5.3.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from treeclaim.forest.explain.explain import Focus, explain_request
from treeclaim.forest.placing.candidate import Candidate, no_trees
from treeclaim.forest.placing.query_pool import QueryPool
from treeclaim.forest.placing.rules import RuleState, make_rule_states
from treeclaim.forest.placing.scratch import ScratchForest
from treeclaim.forest.planning.moves.move_model import Assignment, CandidatePlace, MoverKind
from treeclaim.forest.planning.moves.movers import (
    Cell,
    Mover,
    MoveSituation,
    Returns,
    StuckReason,
    flatten_cells,
    get_free_units,
    sum_by_cell,
)
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import SearchGivenUpError


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A step of a plan, with the returns to holds."""

    mover: Mover
    alternative: int
    candidate: Candidate
    returned: Returns


class Board:
    """The Forest after the moves so far; `rules` are the states of the rules by consumer that a rule names."""

    def __init__(self, situation: MoveSituation, moves: Iterable[Move] = ()) -> None:
        """Start from the situation, and repeat moves of another board."""
        self.situation = situation
        self.budget = situation.budget
        self.moves: list[Move] = []
        self.rules = make_rule_states(situation.rules, situation.ruled_trees)
        self._open_trees: Mask = ~situation.emptied
        self._scratch = ScratchForest(situation.forest)
        self._pool = QueryPool(self._scratch, situation.budget)
        for move in moves:
            self.move(move.mover, move.alternative, move.candidate)

    @property
    def forest(self) -> Forest:
        """Return the Forest after the moves; callers must not change it."""
        return self._scratch.forest

    # -- consumers -------------------------------------------------------------------------------

    def count_empty_trees(self) -> int:
        """Count the trees without consumers."""
        tree, occupied = self.situation.forest.order.tree, dict(self.situation.occupied)
        for move in self.moves:
            allocations = move.candidate.allocations
            trees = frozenset(int(tree[row]) for row, _, _ in allocations)
            occupied[move.mover.consumer.uuid] = trees
            for hold, row in move.returned:
                occupied[hold] = occupied.get(hold, frozenset()) | {int(tree[row])}
        return len(self.situation.forest.order.roots) - len(
            frozenset[int]().union(*occupied.values())
        )

    def find_misplaced(self) -> set[str]:
        """Return the consumers, holds included, in places that the goal forbids."""
        misplaced = set(self.situation.misplaced)
        for move in self.moves:
            misplaced.discard(move.mover.consumer.uuid)
            for hold, row in move.returned:
                if self.situation.cleared[row]:
                    misplaced.add(hold)
        return misplaced

    # -- moves -----------------------------------------------------------------------------------

    def move(self, mover: Mover, alternative: int, candidate: Candidate) -> None:
        """Make a move, which must be legal now."""
        units, returned = self.situation.compute_change(mover, candidate.allocations)
        self.moves.append(Move(mover, alternative, candidate, returned))
        for rule in self.rules.get(mover.consumer.uuid, ()):
            rule.add(mover.trees, -1)
            rule.add(candidate.trees)
        self.take(units)
        self._scratch.begin_conditions(candidate.allocations)

    def take(self, cells: Mapping[Cell, int], sign: int = 1) -> None:
        """Take units by cell; the sign -1 releases them."""
        if cells:
            self._scratch.take(flatten_cells({cell: sign * n for cell, n in cells.items()}))

    # -- places ----------------------------------------------------------------------------------

    def find(
        self, mover: Mover, allowed: Mask | None = None, *, by_rules: bool = True
    ) -> tuple[int, Candidate] | None:
        """Return the alternative and the first candidate to which a mover may move now, in trees of a mask.

        No move on the board may have moved it. False for `by_rules` ignores the rules.
        """
        allowed = self._open_trees if allowed is None else allowed & self._open_trees
        rules = self.get_rules(mover) if by_rules else ()
        accepts = partial(self.situation.may_take, mover)
        released = {} if self.situation.call.both_at_once else mover.allocations
        self.take(released, -1)
        try:
            return self._pool.find_first(mover.alternatives, allowed, rules, accepts=accepts)
        finally:
            self.take(released)

    def get_rules(self, mover: Mover) -> list[RuleState]:
        """Return the states of a mover's rules for its move."""
        rules = self.rules.get(mover.consumer.uuid, ())
        return [rule.copy_without(mover.trees) for rule in rules]


def find_reasons(
    board: Board, uuids: Iterable[str], end: float
) -> tuple[list[dict[str, Any]], bool]:
    """Return the member `stuck` of the response for misplaced consumers, and whether all reasons were found in time.

    After `end`, by the monotonic clock, the remaining reasons are `no_room`.
    """
    stuck: list[dict[str, Any]] = []
    is_explained, is_complete = not board.situation.call.explain, True
    for uuid in uuids:
        mover = board.situation.movers.get(uuid)
        reason = StuckReason.NOT_MOVABLE if mover is None else mover.stuck or StuckReason.NO_ROOM
        stuck.append({"consumer": uuid, "reason": reason.value})
        if mover is None or mover.stuck is not None:
            continue
        try:
            with board.budget.ending(end):
                reason = _find_reason(board, mover)
                stuck[-1]["reason"] = reason.value
                if reason is StuckReason.NO_ROOM and not is_explained:
                    is_explained = True
                    stuck[-1]["explanation"] = _explain(board, mover)
        except SearchGivenUpError:
            is_complete = False
    return stuck, is_complete


def _find_reason(board: Board, mover: Mover) -> StuckReason:
    if any(move.mover is mover for move in board.moves):
        return StuckReason.NO_ROOM
    if board.find(mover) is not None:
        return StuckReason.MAX_MOVES
    if board.find(mover, by_rules=False) is not None:
        return StuckReason.RULE
    return StuckReason.NO_ROOM


def _explain(board: Board, mover: Mover) -> Mapping[str, Any]:
    """Explain why the first alternative of a consumer has no candidate after the moves."""
    request = mover.alternatives[0]
    roots = board.forest.order.roots[board.situation.emptied].tolist()
    emptied = tuple(map(board.forest.uuid_of, roots))
    root = replace(request.root, not_in_tree=(*request.root.not_in_tree, *emptied))
    with board.budget.scope():
        return explain_request(board.forest, replace(request, root=root), Focus(), board.budget)


def make_moves(board: Board, assignment: Assignment) -> bool:
    """Make the moves of an assignment in a legal order, and choose the place of each consumer.

    Moves that free the most needed units come first. This heuristic may miss an existing legal order.

    Returns:
        Whether a legal order was found.
    """
    leaving: dict[MoverKind, list[Mover]] = {}
    arriving: dict[MoverKind, list[CandidatePlace]] = {}
    for kind, (movers, places) in assignment.items():
        leaving[kind], arriving[kind] = _drop_stays(movers, places)
    while any(leaving.values()):
        board.budget.check()
        for kind, mover, place in _sort_moves(board, leaving, arriving):
            target = _find_target(board, mover, place)
            if target is not None:
                board.move(mover, *target)
                leaving[kind].remove(mover)
                arriving[kind].remove(place)
                break
        else:
            return False
    return True


def _sort_moves(
    board: Board,
    leaving: Mapping[MoverKind, Sequence[Mover]],
    arriving: Mapping[MoverKind, Sequence[CandidatePlace]],
) -> list[tuple[MoverKind, Mover, CandidatePlace]]:
    """Return the remaining moves; moves that free the most needed units come first."""
    needed_units: Counter[Cell] = Counter()
    for places in arriving.values():
        for place in places:
            needed_units.update(board.situation.sum_used(place.candidate.allocations))
    lacking = {cell: n - get_free_units(board.forest, cell) for cell, n in needed_units.items()}
    lacking_units = +Counter(lacking)
    options = [
        (kind, mover, place)
        for kind, places in arriving.items()
        for place in dict.fromkeys(places)
        for mover in {frozenset(m.allocations.items()): m for m in leaving[kind]}.values()
    ]

    def gain(option: tuple[MoverKind, Mover, CandidatePlace]) -> float:
        relief = option[1].relief.items()
        return sum(
            min(n, lacking_units[cell]) / lacking_units[cell]
            for cell, n in relief
            if lacking_units[cell]
        )

    return sorted(options, key=gain, reverse=True)


def _find_target(
    board: Board, mover: Mover, place: CandidatePlace
) -> tuple[int, Candidate] | None:
    """Return the alternative and candidate for a move to a place; None if it is not legal now."""
    candidate = place.candidate
    if mover.alternatives[place.alternative].can_split:
        # The division of an amount depends on the free amounts.
        trees = no_trees(board.forest)
        trees[list(candidate.trees)] = True
        target = board.find(mover, trees)
        is_move = target is not None and sum_by_cell(target[1].allocations) != mover.allocations
        return target if is_move else None
    released = (
        {}
        if board.situation.call.both_at_once
        else board.situation.sum_used(flatten_cells(mover.allocations))
    )
    if any(
        get_free_units(board.forest, cell) + released.get(cell, 0) < n
        for cell, n in board.situation.sum_used(candidate.allocations).items()
    ):
        return None
    is_permitted = all(rule.permits(candidate.trees, {}) for rule in board.get_rules(mover))
    return (place.alternative, candidate) if is_permitted else None


def _drop_stays(
    movers: Sequence[Mover], places: Sequence[CandidatePlace]
) -> tuple[list[Mover], list[CandidatePlace]]:
    """Return the movers and places without the movers that already have one of the places."""
    leaving, arriving = list(movers), list(places)
    for place in places:
        cells = sum_by_cell(place.candidate.allocations)
        staying = next((mover for mover in leaving if mover.allocations == cells), None)
        if staying is not None:
            leaving.remove(staying)
            arriving.remove(place)
    return leaving, arriving
