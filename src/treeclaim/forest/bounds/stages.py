# SPDX-License-Identifier: Apache-2.0
"""How long each stage of a question took, though the stages draw from each other and run in turn."""

from collections.abc import Iterator
from time import perf_counter
from typing import TypeVar

Drawn = TypeVar("Drawn")

RELATE, WRITE = "relate", "write"
"""The stages that each question has, the first and the last."""


class Stages:
    """The time of each stage, without that of the stages from which it draws.

    Attributes:
        seconds: By name of the stage, of those that were left so far.
    """

    __slots__ = ("_since", "_stage", "seconds")

    def __init__(self) -> None:
        """Begin with the first stage."""
        self.seconds: dict[str, float] = {}
        self._stage = RELATE
        self._since = perf_counter()

    def enter(self, stage: str) -> str:
        """Count what passes from now on for a stage; return the stage that it counted for so far."""
        now = perf_counter()
        former = self._stage
        self.seconds[former] = self.seconds.get(former, 0.0) + now - self._since
        self._stage, self._since = stage, now
        return former

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
