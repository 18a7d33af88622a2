# SPDX-License-Identifier: Apache-2.0
"""A question to the lanes, its caller, and its deadline.

Amounts of holds are not in the Forest. They are read for the few questions that need them, in the snapshot to which
the Forest is brought before they are answered. So both are of one moment: a draw that is visible in only one of the two
would count room twice, or not at all. The snapshot is taken after the question arrived, so it shows everything that was
committed before (contract page 100, section 2).
"""

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts, HeldColumns
from treeclaim.model.changes import Cursor
from treeclaim.model.errors import ClientGoneError, OverloadedError, SearchGivenUpError
from treeclaim.model.request import CandidateRequest
from treeclaim.model.timing import has_passed
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holds import load_held_amounts, load_held_sums

LONGEST_WAIT = 30.0
"""Seconds to wait for a turn if the operator set no limit to searches: the default of that limit, and as long as clients
wait for an answer."""

DEFAULT_MEMORY = 128_000_000
"""Bytes that a search may hold if the operator set no limit. Four children with their overhead, and a worker's own
300 MB, are less than the gigabyte below which a worker should stay."""


@dataclass(frozen=True, slots=True)
class HoldsQuery:
    """The amounts of holds that a question needs.

    Attributes:
        named: Uuids of the holds from which it may draw.
        everywhere: Whether it needs the sums of all holds.
    """

    named: frozenset[str] = frozenset()
    everywhere: bool = False

    @classmethod
    def of(cls, requests: Iterable[CandidateRequest], *, everywhere: bool = False) -> "HoldsQuery":
        """Return the amounts that some requests need."""
        named = frozenset[str]().union(*(request.from_holds for request in requests))
        return cls(named, everywhere)

    def __bool__(self) -> bool:
        """Tell whether any amount is needed."""
        return bool(self.named) or self.everywhere

    def read(self, transaction: ReadTransaction) -> HeldAmounts:
        """Read the amounts."""
        by_hold = load_held_amounts(transaction, sorted(self.named)) if self.named else {}
        everywhere = HeldColumns.of(load_held_sums(transaction)) if self.everywhere else None
        return HeldAmounts(by_hold, everywhere)


NO_HOLDS = HoldsQuery()


def _assume_connected() -> bool:
    """Return False, where the server cannot tell whether the client has disconnected."""
    return False


@dataclass(frozen=True, slots=True)
class Arrival:
    """The arrival of a question. Its time runs from there, waiting included.

    Attributes:
        seconds: Time that the operator allows; None for any time.
        is_gone: Tells whether the client has disconnected.
        begin, end: Arrival and deadline, of the monotonic clock.
        memory: Bytes that the search may hold.
    """

    seconds: float | None
    is_gone: Callable[[], bool]
    begin: float
    end: float
    memory: int

    @classmethod
    def now(
        cls,
        seconds: float | None = None,
        is_gone: Callable[[], bool] | None = None,
        most_bytes: int | None = None,
    ) -> "Arrival":
        """Start the time now; without a limit, the search may hold `DEFAULT_MEMORY`."""
        begin = time.monotonic()
        end = float("inf") if seconds is None else begin + seconds
        return cls(seconds, is_gone or _assume_connected, begin, end, most_bytes or DEFAULT_MEMORY)

    def check(self) -> None:
        """Raise if the time is over or the client has disconnected.

        Raises:
            SearchGivenUpError: if there is no time left.
            ClientGoneError: if the client has disconnected.
        """
        if has_passed(self.end):
            raise self.timeout_error()
        if self.is_gone():
            raise ClientGoneError

    def extended_by(self, seconds: float) -> "Arrival":
        """Return the arrival with a later deadline, for time that was spent on other work."""
        return replace(self, end=self.end + seconds)

    @property
    def wait(self) -> float:
        """Return how many seconds the question may still wait for a turn."""
        return min(self.end, self.begin + LONGEST_WAIT) - time.monotonic()

    def timeout_error(self) -> SearchGivenUpError:
        """Return the refusal for a question that used up its time."""
        return SearchGivenUpError(self.seconds or 0)

    def overload_error(self, resource: str) -> OverloadedError | ClientGoneError:
        """Return the refusal for a question that did not get a turn."""
        return ClientGoneError() if self.is_gone() else OverloadedError(resource)


PendingAnswer = Generator[bytes | memoryview, None, int]
"""Yields the body of an answer, for which the work is done between the pieces; returns the number of candidates in it."""


class CountedPieces:
    """The pieces of an answer.

    Attributes:
        candidates: Number of candidates, once all pieces have been drawn.
    """

    def __init__(self, answer: PendingAnswer) -> None:
        self.candidates = 0
        self._answer = answer

    def __iter__(self) -> Iterator[bytes | memoryview]:
        """Yield the pieces, once."""
        self.candidates = yield from self._answer


Read = Callable[[ReadTransaction, Cursor], Iterable[object]]
"""Yields parts that are read from the database, in a snapshot and at the Forest's position in the feed."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the Forest answers, in the turn or in a child.

    Attributes:
        work: Begins to answer from the Forest, the parts that were read, and a budget. It uses nothing else: no locks,
            no metrics. It raises the TreeclaimErrors that the question gives reason for.
        key: A short text that is equal for equal questions; None to keep nothing.
        holds: The amounts of holds that it needs, which `work` finds as `Forest.held`.
        reads: Reads what else it needs. Such a question is answered by a child alone, which may change its Forest: the
            parts are of the same moment (contract page 101).
        is_repeatable: Whether the answer is the same as long as nothing changes.
        is_hard: Whether to skip the attempt in the turn.
        is_plan: Whether it is a plan, of which a worker runs one at a time.
    """

    work: Callable[[Forest, Iterator[Any], Budget], PendingAnswer]
    key: bytes | None = None
    holds: HoldsQuery = NO_HOLDS
    reads: Read | None = None
    is_repeatable: bool = False
    is_hard: bool = False
    is_plan: bool = False

    def reading_holds(self) -> "Question":
        """Return the question with its holds as a part that is read, while the child waits with its Forest."""

        def work(forest: Forest, parts: Iterator[Any], budget: Budget) -> PendingAnswer:
            return self.work(forest.holding(next(parts)), parts, budget)

        def reads(transaction: ReadTransaction, _: Cursor) -> Iterator[object]:
            yield self.holds.read(transaction)

        return replace(self, work=work, holds=NO_HOLDS, reads=reads)
