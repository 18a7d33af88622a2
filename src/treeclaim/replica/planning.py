# SPDX-License-Identifier: Apache-2.0
"""Questions under assumptions, and plans (contract page 101)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.consumers import Consumers, Readings, Requests, with_requests
from treeclaim.forest.planning.given import changed
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import NOTHING_HELD
from treeclaim.model.changes import Cursor
from treeclaim.model.extension.planning import Given
from treeclaim.model.request import CandidateRequest
from treeclaim.replica.asking import Drawn, HeldAsked, Question
from treeclaim.replica.placing_questions import require_names_of
from treeclaim.replica.questions import OnePiece
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.planned import planned_consumers


@dataclass(frozen=True, slots=True)
class GivenQuestion:
    """A question, answered as things would be (section 1).

    Attributes:
        question: What is asked.
        given: What is assumed.
    """

    question: Question
    given: Given

    @property
    def is_plan(self) -> bool:
        """Treat it like any other long question."""
        return False

    def reads(self, transaction: ReadTransaction, cursor: Cursor) -> Iterator[object]:
        """Yield what holds have, as far as it is asked for, and those who are released."""
        del cursor
        holds = self.question.holds
        yield holds.read(transaction) if holds else NOTHING_HELD
        if self.given.release:
            yield from planned_consumers(transaction, sorted(set(self.given.release)))

    def begin_with(self, forest: Forest, parts: Iterable[Any], budget: Budget) -> Drawn:
        """Change the Forest, and begin to answer.

        Raises:
            TreeclaimError: as the question does; BatchRefusedError, QueryError.
        """
        held, *rest = parts
        consumers = Readings(forest, rest, budget).consumers
        world = changed(forest, consumers, self.given, held, budget)
        drawn = self.question.begin(world.forest, budget)
        return _Telling(drawn, world.placed) if self.given else drawn


class _Telling:
    """An answer that also says how many consumers were placed first."""

    def __init__(self, drawn: Drawn, placed: Sequence[int]) -> None:
        self._drawn = drawn
        self._placed = placed

    @property
    def candidates(self) -> int:
        """Return how many candidates were written so far."""
        return self._drawn.candidates

    @candidates.setter
    def candidates(self, count: int) -> None:
        self._drawn.candidates = count

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the body, a JSON object, with one more member."""
        told = orjson.dumps({"given": {"placed": self._placed}})
        pieces = self._drawn.pieces()
        first = bytes(next(pieces))
        yield told[:-1] + b"," + first[1:]
        yield from pieces


Planner = Callable[[Forest, Consumers, Budget], dict[str, Any]]
"""Returns an answer from a Forest, all consumers, and a budget that leaves time to write the answer."""


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """A plan: what a planner makes of the Forest and of all consumers, as things would be.

    Attributes:
        given: What is assumed.
        planner: Makes the plan, and knows its deadline.
        requests: Queries of the call by consumer.
        queries: The same, read, by where they stand in the call.
        read: Reads a kept query, or raises a TreeclaimError.
        named: Uuids of holds of which is asked what they have.
    """

    given: Given
    planner: Planner
    requests: Mapping[str, Sequence[str]]
    queries: Mapping[str, CandidateRequest]
    read: Callable[[str], CandidateRequest]
    named: frozenset[str] = frozenset()

    @property
    def is_plan(self) -> bool:
        """Say that it is of the kind that a worker runs one at a time."""
        return True

    def reads(self, transaction: ReadTransaction, cursor: Cursor) -> Iterator[object]:
        """Yield what named holds have, and all consumers."""
        del cursor
        yield HeldAsked(self.named, everywhere=True).read(transaction)
        yield from planned_consumers(transaction)

    def begin_with(self, forest: Forest, parts: Iterable[Any], budget: Budget) -> Drawn:
        """Change the Forest, and begin to plan.

        Raises:
            BatchRefusedError, QueryError: for what is faulty in the call.
        """
        held, *rest = parts
        readings = Readings(forest, rest, budget)
        world = changed(forest, readings.consumers, self.given, held, budget)
        require_names_of(forest, self.queries, budget)
        requests = Requests(forest, self.read, budget)
        consumers = with_requests(world.consumers.values(), readings.kept, self.requests, requests)

        drawn = OnePiece(lambda: orjson.dumps(self.planner(forest, consumers, budget)))
        return _Telling(drawn, world.placed) if self.given else drawn
