# SPDX-License-Identifier: Apache-2.0
"""A question to the lanes, its client, and its deadline.

What holds have is not in the Forest. It is read for the few questions that need it, in the snapshot
to which the Forest is brought before they are answered, so it is of the same moment as what is used: if a
draw were visible in only one of the two, room would count twice, or not at all. As the snapshot is
taken after the question came, it shows everything that was committed before (contract page 100, section 2).
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import Held, HeldColumns
from treeclaim.model.changes import Cursor
from treeclaim.model.deadlines import has_passed
from treeclaim.model.errors import ClientGoneError, OverloadedError, SearchGivenUpError
from treeclaim.model.request import CandidateRequest
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holds import held_by, held_everywhere

LONGEST_WAIT = 30.0
"""Seconds that anybody waits for a turn if the operator set no limit to searches: as long as
the default of that limit, and as clients wait for an answer."""

DEFAULT_MEMORY = 128_000_000
"""Bytes that a search may hold if the operator set no limit. Four children with their overhead,
and a worker's own 300 MB, are less than the gigabyte below which a worker should stay."""


@dataclass(frozen=True, slots=True)
class HeldAsked:
    """What a question asks about holds.

    Attributes:
        named: Uuids of the holds from which it may draw.
        everywhere: Whether it asks for what all holds have together.
    """

    named: frozenset[str] = frozenset()
    everywhere: bool = False

    @classmethod
    def of(cls, requests: Iterable[CandidateRequest], *, everywhere: bool = False) -> "HeldAsked":
        """Return what some requests ask for."""
        named = frozenset[str]().union(*(request.from_holds for request in requests))
        return cls(named, everywhere)

    def __bool__(self) -> bool:
        """Tell whether it asks for anything."""
        return bool(self.named) or self.everywhere

    def read(self, transaction: ReadTransaction) -> Held:
        """Read what is asked for."""
        by_hold = held_by(transaction, sorted(self.named)) if self.named else {}
        everywhere = HeldColumns.of(held_everywhere(transaction)) if self.everywhere else None
        return Held(by_hold, everywhere)


NO_HOLDS = HeldAsked()
"""Asks for nothing."""


def nobody_left() -> bool:
    """Assume that the client is still there, where the server cannot tell."""
    return False


@dataclass(frozen=True, slots=True)
class Asked:
    """The arrival of a question, from which its time runs, waiting included.

    Attributes:
        seconds: What the operator allows for it; None for any time.
        is_gone: Tells whether the client has hung up.
        begin, end: When it was asked, and its deadline, of the monotonic clock.
        memory: How many bytes its search may hold.
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
    ) -> "Asked":
        """Start the time now; the search may hold `DEFAULT_MEMORY` where nothing else is said."""
        begin = time.monotonic()
        end = float("inf") if seconds is None else begin + seconds
        return cls(seconds, is_gone or nobody_left, begin, end, most_bytes or DEFAULT_MEMORY)

    def check(self) -> None:
        """Go on, unless the time is over or the client has hung up.

        Raises:
            SearchGivenUpError: if there is no time left.
            ClientGoneError: if the client has hung up.
        """
        if has_passed(self.end):
            raise self.given_up()
        if self.is_gone():
            raise ClientGoneError

    @property
    def wait(self) -> float:
        """Return how many seconds the question may still wait for a turn."""
        return min(self.end, self.begin + LONGEST_WAIT) - time.monotonic()

    def given_up(self) -> SearchGivenUpError:
        """Return the refusal for a question that used up its time."""
        return SearchGivenUpError(self.seconds or 0)

    def refused(self, what: str) -> OverloadedError | ClientGoneError:
        """Return the refusal for a question that did not get a turn."""
        return ClientGoneError() if self.is_gone() else OverloadedError(what)


class Drawn(Protocol):
    """An answer that is being computed.

    Attributes:
        candidates: How many were written so far.
    """

    candidates: int

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the body; the work is done between the pieces."""
        ...


class Question(Protocol):
    """A question that the Forest answers, possibly in another process."""

    @property
    def key(self) -> bytes | None:
        """Return a short text that is equal for equal questions; None to cache nothing."""
        ...

    @property
    def is_repeatable(self) -> bool:
        """Tell whether the answer is the same as long as nothing changes."""
        ...

    @property
    def is_hard(self) -> bool:
        """Tell whether to skip the attempt in the worker itself."""
        ...

    @property
    def holds(self) -> HeldAsked:
        """Return what it asks about holds, which it finds as `Forest.held`."""
        ...

    def begin(self, forest: Forest, budget: Budget) -> Drawn:
        """Begin to answer. Touch nothing but the Forest: no locks, no metrics.

        Raises:
            TreeclaimError: what the question itself gives reason for.
        """
        ...


@runtime_checkable
class ReadingQuestion(Protocol):
    """A question for which more is read than the Forest, answered by a child alone (page 101).

    What is read is of the same moment as the Forest that the child has, which is the child's own: the
    question may change it.
    """

    @property
    def is_plan(self) -> bool:
        """Tell whether it is of the kind that a worker runs one at a time."""
        ...

    def reads(self, transaction: ReadTransaction, cursor: Cursor) -> Iterable[object]:
        """Yield what is read, part after part, by the moment's snapshot and position."""
        ...

    def begin_with(self, forest: Forest, parts: Iterable[Any], budget: Budget) -> Drawn:
        """Begin to answer, in the child. Touch nothing but the Forest: no locks, no metrics.

        Raises:
            TreeclaimError: what the question itself gives reason for.
        """
        ...


@dataclass(frozen=True, slots=True)
class HoldingQuestion:
    """A question about what all holds have, which is read while a child waits with its Forest."""

    question: Question

    @property
    def is_plan(self) -> bool:
        """Treat it like any other long question."""
        return False

    def reads(self, transaction: ReadTransaction, cursor: Cursor) -> Iterator[object]:
        """Yield what holds have."""
        del cursor
        yield self.question.holds.read(transaction)

    def begin_with(self, forest: Forest, parts: Iterable[Any], budget: Budget) -> Drawn:
        """Begin to answer."""
        (held,) = parts
        return self.question.begin(forest.holding(held), budget)
