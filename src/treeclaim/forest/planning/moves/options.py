# SPDX-License-Identifier: Apache-2.0
"""All that consumers may be moved to, whoever else may have moved by then."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.independent import query_of
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.planning.moves.board import Move
from treeclaim.forest.planning.moves.picture import Cell, Mover, Picture, cells_of

MOST_OPTIONS = 64
"""Candidates of a consumer of a small world. What the page promises is for 16."""

_MOST_LISTED = 4096


def options_of(picture: Picture, budget: Budget) -> dict[Mover, Sequence[Move]] | None:
    """Return all moves of each mover, as if all others were gone.

    Returns:
        None where there are too many, or where they depend on who else has moved: where an amount
        is split, by how much is free.
    """
    moves_of: dict[Mover, Sequence[Move]] = {}
    freed = scratch_without(picture)
    for mover in picture.movable:
        moves: dict[frozenset[tuple[tuple[int, str], int]], Move] = {}
        for alternative, request in enumerate(mover.alternatives):
            if request.can_split:
                return None
            with budget.scope():
                query = query_of(freed, request, budget)
                candidates = list(islice(query.each(), _MOST_LISTED))
            if len(candidates) == _MOST_LISTED:
                return None
            for candidate in candidates:
                budget.check()
                if picture.may_take(mover, candidate):
                    cells = cells_of(candidate.gifts)
                    change = picture.change(mover, candidate.gifts)
                    if cells != mover.gifts:
                        key = frozenset(cells.items())
                        moves.setdefault(key, Move(mover, alternative, candidate, change))
        if len(moves) > MOST_OPTIONS:
            return None
        moves_of[mover] = list(moves.values())
    return moves_of


def scratch_without(picture: Picture) -> Scratch:
    """Return what is used if all who may move were gone, with what they have drawn."""
    scratch = Scratch(picture.forest)
    units: Counter[Cell] = Counter()
    for mover in picture.movable:
        units.update(mover.gifts)
    scratch.give_back([(position, name, n) for (position, name), n in units.items()])
    return scratch
