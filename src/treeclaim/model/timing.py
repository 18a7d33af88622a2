# SPDX-License-Identifier: Apache-2.0
"""The deadline of a request, and the duration of each of its stages.

All loops over input check a deadline by `has_passed`, so that one test can measure the time between two checks of any
operation. Searches, transactions and readers of bodies have separate deadlines.

Stages are interleaved: the stages of a search are chained iterators, and the claims of a group share a transaction.
"""

from collections.abc import Collection, Iterable, Iterator
from time import monotonic, perf_counter
from typing import TypeVar

from treeclaim.model.errors import RequestGivenUpError

Item = TypeVar("Item")


def has_passed(at: float | None) -> bool:
    """Return whether a time of the monotonic clock has passed; False for None."""
    return at is not None and monotonic() > at


class Deadline:
    """The deadline of a request, except for its search and its transaction, on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.at = monotonic() + seconds
        self._seconds = seconds

    @property
    def is_over(self) -> bool:
        """Return whether the deadline has passed."""
        return has_passed(self.at)

    def check(self) -> None:
        """Raise RequestGivenUpError once the deadline has passed."""
        if self.is_over:
            raise RequestGivenUpError(self._seconds)

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; raise RequestGivenUpError once the deadline has passed."""
        for item in items:
            self.check()
            yield item


RELATE, WRITE = "relate", "write"
"""The first and the last stage of each search."""

WAIT, LOCKS, STATEMENTS, COMMIT, HAND_OVER = "wait", "locks", "statements", "commit", "hand_over"
"""The stages of a claim: waiting for a connection; locking statements with their waits; other statements and the
decision; the commit; the return to the thread of the request."""

TRANSACTION = (LOCKS, STATEMENTS, COMMIT)
"""Stages that the claims of a group share."""

SEARCH = "search"
"""The stage in which a group of placements is found, before they wait to be written."""


class Stages:
    """The time of each stage, without the time of the stages before it in the chain.

    Attributes:
        seconds: Time by name of each stage that has ended.
        reported_elsewhere: Stages that another instance reports.
        stage, since: The current stage, and the time of `perf_counter` at its start.
    """

    __slots__ = ("reported_elsewhere", "seconds", "since", "stage")

    def __init__(self, first_stage: str = RELATE) -> None:
        self.seconds: dict[str, float] = {}
        self.reported_elsewhere: Collection[str] = ()
        self.stage = first_stage
        self.since = perf_counter()

    def enter(self, stage: str) -> str:
        """Enter a stage; return the previous one."""
        now = perf_counter()
        former_stage = self.stage
        self.seconds[former_stage] = self.seconds.get(former_stage, 0.0) + now - self.since
        self.stage, self.since = stage, now
        return former_stage

    def stop(self) -> None:
        """Record the time of the current stage until now."""
        self.enter(self.stage)

    def timed(self, stage: str, items: Iterator[Item]) -> Iterator[Item]:
        """Yield the items, and record the time of the iterator as a stage."""
        while True:
            former_stage = self.enter(stage)
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self.enter(former_stage)
            yield item

    def copy_transaction(self, leader: "Stages", *, is_reported: bool) -> None:
        """Copy the stages of a group's transaction from its leader, and enter the leader's current stage.

        The current stage of this member began before the transaction, and gets the time until then. If the leader
        reports the times of the transaction, this member does not.
        """
        shared_seconds = {
            stage: stage_seconds
            for stage, stage_seconds in leader.seconds.items()
            if stage in TRANSACTION
        }
        own_seconds = leader.since - self.since - sum(shared_seconds.values())
        self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + own_seconds
        self.seconds |= shared_seconds
        self.reported_elsewhere = TRANSACTION if is_reported else ()
        self.stage, self.since = leader.stage, leader.since
