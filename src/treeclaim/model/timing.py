# SPDX-License-Identifier: Apache-2.0
"""The deadline of a request, and the duration of each of its stages.

All code that works through input checks its deadline by `has_passed`: searches, transactions and readers of
bodies have deadlines of their own. One test can therefore measure, for
every operation, the time between two checks.

Stages run in any order: the stages of a search draw from each other and run in turn; claims of a group share a
transaction.
"""

from collections.abc import Collection, Iterable, Iterator
from time import monotonic, perf_counter
from typing import TypeVar

from treeclaim.model.errors import RequestGivenUpError

Item = TypeVar("Item")


def has_passed(at: float | None) -> bool:
    """Return whether a time of the monotonic clock has passed; None never passes."""
    return at is not None and monotonic() > at


class Deadline:
    """The end of the work for a request, apart from its search and its transaction.

    Attributes:
        at: On the monotonic clock.
    """

    def __init__(self, seconds: float) -> None:
        """Start a deadline that many seconds from now."""
        self.at = monotonic() + seconds
        self._seconds = seconds

    @property
    def is_over(self) -> bool:
        """Return whether the deadline has passed."""
        return has_passed(self.at)

    def check(self) -> None:
        """Raise an error once the deadline has passed.

        Raises:
            RequestGivenUpError: if the deadline has passed.
        """
        if self.is_over:
            raise RequestGivenUpError(self._seconds)

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, and check the deadline before each.

        Raises:
            RequestGivenUpError: if it has passed.
        """
        for item in items:
            self.check()
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
    """The time of each stage, without the stages whose items it consumes.

    Attributes:
        seconds: Time by name of each stage that was left so far.
        reported_elsewhere: Stages whose times another instance reports.
        stage, since: The present stage, and when it was entered.
    """

    __slots__ = ("reported_elsewhere", "seconds", "since", "stage")

    def __init__(self, first: str = RELATE) -> None:
        """Begin with the first stage."""
        self.seconds: dict[str, float] = {}
        self.reported_elsewhere: Collection[str] = ()
        self.stage = first
        self.since = perf_counter()

    def enter(self, stage: str) -> str:
        """Enter a stage, and return the former one."""
        now = perf_counter()
        former = self.stage
        self.seconds[former] = self.seconds.get(former, 0.0) + now - self.since
        self.stage, self.since = stage, now
        return former

    def stop(self) -> None:
        """Add the time so far to the present stage."""
        self.enter(self.stage)

    def timed(self, stage: str, items: Iterator[Drawn]) -> Iterator[Drawn]:
        """Yield the items, and count the time of drawing them for a stage."""
        while True:
            former = self.enter(stage)
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self.enter(former)
            yield item

    def share(self, leader: "Stages", *, is_reported: bool) -> None:
        """Count the transaction of the leader of a group, and enter its present stage.

        The remaining time is that of the present stage.

        Args:
            leader: The leader, whose transaction began after the present stage of this member.
            is_reported: Whether the leader reports the times of the transaction.
        """
        shared = {stage: took for stage, took in leader.seconds.items() if stage in TRANSACTION}
        passed = leader.since - self.since - sum(shared.values())
        self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + passed
        self.seconds |= shared
        self.reported_elsewhere = TRANSACTION if is_reported else ()
        self.stage, self.since = leader.stage, leader.since
