# SPDX-License-Identifier: Apache-2.0
"""The duration of each stage of a question or a claim, in whatever order they run.

The stages of a search draw from each other and run in turn; claims of a group share a transaction.
"""

from collections.abc import Collection, Iterator
from time import perf_counter
from typing import TypeVar

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
