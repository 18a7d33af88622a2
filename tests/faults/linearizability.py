# SPDX-License-Identifier: Apache-2.0
"""Is there one order of all that clients saw of a provider in which every answer is right?

A provider is a counter with a bound: successful claims move its usage and its generation, a
refusal says that there was no room, a read says what both were. Each happened at one moment
between its request and its answer. The search is that of Wing, Gong and Lowe: take any step that
no other step must precede, and go back where that leads nowhere. Since writes commute, the state
follows from the set of steps taken, so a set is tried once.
"""

import math
from dataclasses import dataclass

FOREVER = math.inf
_MOST_SETS = 500_000


class UndecidedError(RuntimeError):
    """The search was given up; nothing is known."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one request did to, or saw of, one provider.

    `usage` and `generation` are what a success adds, or what a read saw; for a refusal `usage`
    is what it would have added. `end` is FOREVER where the answer got lost.
    """

    kind: str
    start: float
    end: float
    usage: int
    generation: int = 0

    @property
    def changes(self):
        return self.kind == "success"

    def holds(self, usage, generation, capacity):
        """Whether this can be what happens in a state."""
        if self.kind == "read":
            return (usage, generation) == (self.usage, self.generation)
        room = usage + self.usage <= capacity
        if self.kind == "refusal":
            return not room
        return room or self.usage <= 0


def explained(steps, capacity, usage=0, generation=0):
    """Whether some order explains all steps, beginning with a usage and a generation."""
    steps = sorted(steps, key=lambda one: one.start)
    seen = set()
    waiting = [(0, usage, generation)]
    while waiting:
        taken, usage, generation = waiting.pop()
        possible = _possible(steps, taken)
        if not possible:
            return True
        fitting = [one for one in possible if steps[one].holds(usage, generation, capacity)]
        # What changes nothing can as well be taken now as later.
        quiet = [one for one in fitting if not steps[one].changes]
        for one in quiet[:1] or sorted(fitting, key=lambda one: -steps[one].end):
            following = taken | (1 << one)
            if following in seen:
                continue
            seen.add(following)
            if len(seen) > _MOST_SETS:
                raise UndecidedError
            change = steps[one].changes
            waiting.append(
                (
                    following,
                    usage + change * steps[one].usage,
                    generation + change * steps[one].generation,
                )
            )
    return False


def _possible(steps, taken):
    """The steps that may come next: those that began before any other one left has ended."""
    found = []
    earliest_end = FOREVER
    # Whatever lies below the lowest bit that is not set was taken.
    first = (~taken & (taken + 1)).bit_length() - 1
    for number in range(first, len(steps)):
        if taken >> number & 1:
            continue
        if steps[number].start > earliest_end:
            break
        found.append(number)
        earliest_end = min(earliest_end, steps[number].end)
    return found
