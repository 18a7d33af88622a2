# SPDX-License-Identifier: Apache-2.0
"""A plan of moves, and what is known about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from treeclaim.forest.placing.candidate import roots_of
from treeclaim.forest.planning.moves.board import Move
from treeclaim.forest.planning.moves.picture import Picture, Stuck


@dataclass(frozen=True, slots=True)
class Standing:
    """How far things are.

    Attributes:
        left: Consumers in trees that are to be empty; None where none are.
        fits: Consumers that fit; None where that is of no meaning.
        empty_trees: Trees in which no consumer holds anything.
        is_counted: Whether there was time to count all that fit.
    """

    left: int | None
    fits: int | None
    empty_trees: int
    is_counted: bool = True

    def told(self) -> dict[str, Any]:
        """Return it as clients are told."""
        return {"left": self.left, "fits": self.fits, "empty_trees": self.empty_trees}


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan.

    Attributes:
        moves: In an order in which each is legal.
        reached: Whether the goal is reached then.
        complete: Whether there was time for all that was to be tried.
        at_least: A proven bound of how many moves reach the goal; None where it has no such bound.
        at_most: Proven bounds of what can be kept, by what; None for other goals.
        optimal: Whether the bound is met.
        proven: Whether the goal provably cannot be reached with this many moves.
        stuck: Who is left in trees that are to be empty, and why.
        explanation: Why the first of them that finds no room finds none, if that was asked.
        before, after: How far things are.
    """

    moves: Sequence[Move]
    reached: bool
    complete: bool
    at_least: int | None
    at_most: Mapping[str, int] | None
    optimal: bool
    proven: bool
    stuck: Mapping[str, Stuck]
    before: Standing
    after: Standing
    explanation: Mapping[str, Any] | None = field(default=None)

    def document(self, picture: Picture) -> dict[str, Any]:
        """Return the answer of the call."""
        document: dict[str, Any] = {
            "reached": self.reached,
            "complete": self.complete,
            "at_least": self.at_least,
            "optimal": self.optimal,
            "proven": self.proven,
            "moves": [_told(picture, move) for move in self.moves],
            "stuck": self._told_stuck(),
            "before": self.before.told(),
            "after": self.after.told(),
        }
        if self.at_most is not None:
            document["at_most"] = dict(self.at_most)
        return document

    def _told_stuck(self) -> list[dict[str, Any]]:
        explanation = self.explanation
        told: list[dict[str, Any]] = []
        for uuid, reason in self.stuck.items():
            told.append({"consumer": uuid, "reason": reason.value})
            if reason is Stuck.NO_ROOM and explanation is not None:
                told[-1]["explanation"] = explanation
                explanation = None
        return told


def _told(picture: Picture, move: Move) -> dict[str, Any]:
    consumer = move.mover.consumer
    told = move.candidate.told(picture.forest)
    return {
        "consumer": consumer.uuid,
        "alternative": consumer.numbers[move.alternative],
        "from": {uuid: {"resources": dict(n)} for uuid, n in consumer.allocations.items()},
        "to": {uuid: {"resources": n} for uuid, n in told.allocations.items()},
        "mappings": told.mappings,
        "from_roots": _roots(picture, move.mover.trees),
        "to_roots": _roots(picture, move.candidate.trees),
        "consumer_generation": consumer.generation,
    }


def _roots(picture: Picture, trees: Sequence[int]) -> list[dict[str, str]]:
    return [{"uuid": uuid, "name": name} for uuid, name in roots_of(picture.forest, trees)]
