# SPDX-License-Identifier: Apache-2.0
"""The deadline of a request, and the duration of each of its stages.

All code that works through input checks its deadline by `has_passed`: searches, transactions and readers of
bodies have deadlines of their own. So one test can measure, for every operation, the time between two checks.

Stages run in any order: the stages of a search draw from each other and run in turn; claims of a group share a
transaction.
"""

from collections.abc import Collection, Iterable, Iterator
from time import monotonic, perf_counter
from typing import TypeVar

from treeclaim.model.errors import RequestGivenUpError

Item = TypeVar("Item")


def has_passed(at: float | None) -> bool:
    """Look whether a time of the monotonic clock has passed; None never does."""
    return at is not None and monotonic() > at


class Deadline:
    """The end of the work for a request, apart from its search and its transaction.

    Attributes:
        at: On the monotonic clock.
    """

    def __init__(self, seconds: float) -> None:
        """Let work end this many seconds from now."""
        self.at = monotonic() + seconds
        self._seconds = seconds

    @property
    def is_over(self) -> bool:
        """Look whether it has passed."""
        return has_passed(self.at)

    def look(self) -> None:
        """Go on, unless it has passed.

        Raises:
            RequestGivenUpError: if it has.
        """
        if self.is_over:
            raise RequestGivenUpError(self._seconds)

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, and check the deadline before each.

        Raises:
            RequestGivenUpError: if it has passed.
        """
        for item in items:
            self.look()
            yield item


Drawn = TypeVar("Drawn")

RELATE, WRITE = "relate", "write"
"""The stages that each question has, the first and the last."""

WAIT, LOCKS, STATEMENTS, COMMIT, HAND_OVER = "wait", "locks", "statements", "commit", "hand_over"
"""The stages of a claim: until its transaction has a connection; statements that take locks, with their
waits; all others, and what is decided by them; the commit; from there to the thread of its request."""

TRANSACTION = (LOCKS, STATEMENTS, COMMIT)
"""Stages that the claims of a group share."""

SEARCH = "search"
"""The stage of a placement that is found together with others, before it waits to be written."""


class Stages:
    """The time of each stage, without that of the stages from which it draws.

    Attributes:
        seconds: By name of the stage, of those that were left so far.
        told: Stages of which another one tells.
        stage, since: The present stage, and when it was entered.
    """

    __slots__ = ("seconds", "since", "stage", "told")

    def __init__(self, first: str = RELATE) -> None:
        """Begin with the first stage."""
        self.seconds: dict[str, float] = {}
        self.told: Collection[str] = ()
        self.stage = first
        self.since = perf_counter()

    def enter(self, stage: str) -> str:
        """Count what passes from now on for a stage; return the stage that it counted for so far."""
        now = perf_counter()
        former = self.stage
        self.seconds[former] = self.seconds.get(former, 0.0) + now - self.since
        self.stage, self.since = stage, now
        return former

    def stop(self) -> None:
        """Count what has passed for the present stage."""
        self.enter(self.stage)

    def timed(self, stage: str, items: Iterator[Drawn]) -> Iterator[Drawn]:
        """Draw the same items, and count what this takes for a stage."""
        while True:
            former = self.enter(stage)
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self.enter(former)
            yield item

    def share(self, leader: "Stages", *, is_told: bool) -> None:
        """Count the transaction of a group's leader, and go on in the stage in which the leader is.

        What has passed in the present stage besides stays with that.

        Args:
            leader: Its transaction has begun after this one's present stage.
            is_told: Whether the leader tells how long it took.
        """
        shared = {stage: took for stage, took in leader.seconds.items() if stage in TRANSACTION}
        passed = leader.since - self.since - sum(shared.values())
        self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + passed
        self.seconds |= shared
        self.told = TRANSACTION if is_told else ()
        self.stage, self.since = leader.stage, leader.since
