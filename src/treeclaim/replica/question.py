# SPDX-License-Identifier: Apache-2.0
"""A question to the replica, its caller, and its deadline.

The Forest does not contain the amounts of holds. Questions that need them read them in a snapshot, after the Forest
has caught up with this snapshot. Both must show the same moment: a draw visible in only one of them would count room
twice, or not at all. The snapshot begins after the question's arrival, so it shows every earlier commit (contract
page 100, section 2).
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts
from treeclaim.model.changes import Cursor
from treeclaim.model.errors import ClientGoneError, OverloadedError, SearchGivenUpError
from treeclaim.model.extension.placing import PlacingRequest
from treeclaim.model.request import CandidateRequest
from treeclaim.model.timing import has_passed
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holds import load_held_amounts, load_held_sums

LONGEST_WAIT = 30.0
"""Most seconds to wait for a turn: the default time limit of a search, and the patience of clients."""

DEFAULT_MEMORY = 128_000_000
"""Bytes of a search without a limit of the operator. Four children with their overhead and a worker of 300 MB stay
below a gigabyte."""


@dataclass(frozen=True, slots=True)
class HoldsQuery:
    """The amounts of holds that a question needs: of the holds `uuids`, and with `has_sums` the sums of all."""

    uuids: frozenset[str] = frozenset()
    has_sums: bool = False

    @classmethod
    def of(
        cls, requests: Iterable[CandidateRequest | PlacingRequest], *, has_sums: bool = False
    ) -> "HoldsQuery":
        """Return the query for the holds that the requests name."""
        uuids = frozenset[str]().union(*(request.from_holds for request in requests))
        return cls(uuids, has_sums)

    def __bool__(self) -> bool:
        """Return whether any amount is needed."""
        return bool(self.uuids) or self.has_sums

    def read(self, transaction: ReadTransaction) -> HeldAmounts:
        """Read the amounts in a transaction."""
        by_hold = load_held_amounts(transaction, sorted(self.uuids)) if self.uuids else {}
        held_sums = load_held_sums(transaction) if self.has_sums else None
        return HeldAmounts(by_hold, held_sums)


NO_HOLDS = HoldsQuery()


@dataclass(frozen=True, slots=True)
class Arrival:
    """The arrival of a question, with its limits and its client.

    Attributes:
        seconds: Time limit of the operator, waits included; None without a limit.
        is_gone: Returns whether the client has disconnected.
        begin, end: Arrival and deadline, on the monotonic clock.
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
        """Return an arrival at the present time; `is_gone` is None for servers that do not detect disconnections."""
        begin = time.monotonic()
        end = float("inf") if seconds is None else begin + seconds
        return cls(seconds, is_gone or (lambda: False), begin, end, most_bytes or DEFAULT_MEMORY)

    def check(self) -> None:
        """Raise SearchGivenUpError after the deadline, or ClientGoneError if the client has disconnected."""
        if has_passed(self.end):
            raise self.timeout_error()
        if self.is_gone():
            raise ClientGoneError

    def extended_by(self, seconds: float) -> "Arrival":
        """Return the arrival with a deadline extended by time that does not count."""
        return replace(self, end=self.end + seconds)

    @property
    def wait(self) -> float:
        """Return the remaining seconds to wait for a turn."""
        return min(self.end, self.begin + LONGEST_WAIT) - time.monotonic()

    def timeout_error(self) -> SearchGivenUpError:
        """Return the error after the deadline."""
        return SearchGivenUpError(self.seconds or 0)

    def overload_error(self, resource: str) -> OverloadedError | ClientGoneError:
        """Return the error after a timeout in a queue for a resource."""
        return ClientGoneError() if self.is_gone() else OverloadedError(resource)


PendingAnswer = Iterator[bytes | memoryview | int]
"""Computes the pieces of an answer lazily; its last item may be the number of candidates."""

ReadParts = Callable[[ReadTransaction, Cursor], Iterable[object]]
"""Yields database parts, read in a snapshot at the Forest's position in the feed."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the Forest answers, in the turn or in a child.

    Attributes:
        work: Computes the answer from the Forest, the database parts, and a budget. It may use no locks and no
            metrics. It raises a TreeclaimError for an invalid question.
        key: Equal for equal questions; None if answers and durations must not be cached.
        holds: The needed amounts of holds, which `work` reads from `Forest.held_amounts`.
        reads: Reads database parts of the same moment as the Forest (contract page 101). Such a question is
            always answered in a child, and `work` may change the Forest.
        is_repeatable: Whether the answer stays valid until the Forest changes.
        is_hard: Whether to skip the attempt in the turn.
        is_plan: Whether it is a plan; a worker runs one plan at a time.
    """

    work: Callable[[Forest, Iterator[Any], Budget], PendingAnswer]
    key: bytes | None = None
    holds: HoldsQuery = NO_HOLDS
    reads: ReadParts | None = None
    is_repeatable: bool = False
    is_hard: bool = False
    is_plan: bool = False

    def with_holds_as_part(self) -> "Question":
        """Return the question with its holds as a database part, which is read after the fork."""

        def work(forest: Forest, parts: Iterator[Any], budget: Budget) -> PendingAnswer:
            return self.work(forest.make_view(held_amounts=next(parts)), parts, budget)

        def reads(transaction: ReadTransaction, _: Cursor) -> Iterator[object]:
            yield self.holds.read(transaction)

        return replace(self, work=work, holds=NO_HOLDS, reads=reads)
