# SPDX-License-Identifier: Apache-2.0
"""Checks that a history of a provider is linearizable: that some order of its requests explains every answer.

A provider is a bounded counter: a successful claim changes usage and generation, a refusal means that capacity was
missing, and a read returns both. Each request takes effect at one moment between its begin and its answer. The search is
that of Wing, Gong and Lowe: take any step that no other step must precede, and backtrack at dead ends. Writes commute, so
the set of taken steps determines the state, and each set is tried once.

Many concurrent writes have too many orders. Therefore some reads list all claims, and each write is visible to such a
read or not. This narrows the interval of the write, or shows that a later read misses a write that an earlier one saw.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from dataclasses import replace as changed

FOREVER = math.inf
_MOST_SETS = 500_000


class UndecidedError(RuntimeError):
    """The search was given up; nothing is known."""


@dataclass(frozen=True, slots=True)
class Step:
    """The effect of a request on a provider, or its view of the provider.

    `usage` and `generation` are the increments of a success, or the values of a read (None for an unknown
    generation); for a refusal `usage` is the refused amount. `end` is FOREVER if the answer was lost. For a success,
    `consumers` has the number of the consumer's write, and whether it has an allocation of the provider afterwards; for
    a read that lists consumers, the number of the last write of each listed consumer; otherwise None.
    """

    kind: str
    start: float
    end: float
    usage: int
    generation: int | None = 0
    consumers: dict | None = field(default=None, hash=False, compare=False)

    @property
    def changes(self):
        """Return whether the step changes the state."""
        return self.kind == "success"

    def fits(self, state, capacity):
        """Return whether the step is possible in a state."""
        if self.kind == "read":
            return state.usage == self.usage and self.generation in {None, state.generation}
        if self.kind == "refusal":
            return state.usage + self.usage > capacity
        return state.usage + self.usage <= capacity or self.usage <= 0

    @property
    def effect(self):
        """Return the key by which concurrent steps differ."""
        return self.usage, self.generation


@dataclass(frozen=True, slots=True)
class State:
    """The state of a provider: used amount and generation."""

    usage: int = 0
    generation: int = 0

    def after(self, step):
        """The state after a success."""
        return State(self.usage + step.usage, self.generation + step.generation)


def explained(steps, capacity, state=State()):
    """Return whether some order explains all steps, beginning with a state."""
    steps = narrowed(steps)
    if any(step.start > step.end for step in steps):
        return False
    steps.sort(key=lambda next_step: next_step.start)
    pinned = sorted(
        (next_step.generation, number)
        for number, next_step in enumerate(steps)
        if next_step.kind == "read" and next_step.generation is not None
    )
    visited = set()
    waiting = [(0, state)]
    while waiting:
        done_mask, state = waiting.pop()
        possible = _possible(steps, done_mask)
        if not possible:
            return True
        # Generations only grow, so nothing may pass the least one that some read has yet to see.
        most = next((pin for pin, number in pinned if not done_mask >> number & 1), math.inf)
        fitting = [
            next_step
            for next_step in possible
            if steps[next_step].fits(state, capacity)
            and (
                not steps[next_step].changes
                or state.generation + steps[next_step].generation <= most
            )
        ]
        # Operations that change nothing can be ordered now as well as later.
        quiet = [next_step for next_step in fitting if not steps[next_step].changes]
        for next_step in quiet[:1] or _distinct(steps, fitting):
            following = done_mask | (1 << next_step)
            if following in visited:
                continue
            visited.add(following)
            if len(visited) > _MOST_SETS:
                raise UndecidedError
            changed_state = state.after(steps[next_step]) if steps[next_step].changes else state
            waiting.append((following, changed_state))
    return False


def _distinct(steps, fitting):
    """Return one step for each kind of change; the step that ends first comes last.

    The first of several equal steps to end can be taken first: in any valid order it can be swapped with an equal step
    before it.
    """
    first = {}
    for number in sorted(fitting, key=lambda number: steps[number].end):
        first.setdefault(steps[number].effect, number)
    return sorted(first.values(), key=lambda number: -steps[number].end)


def _possible(steps, done_mask):
    """The steps that may come next: those that began before any other one left has ended."""
    possible = []
    earliest_end = FOREVER
    # Whatever lies below the lowest bit that is not set was taken.
    first = (~done_mask & (done_mask + 1)).bit_length() - 1
    for number in range(first, len(steps)):
        if done_mask >> number & 1:
            continue
        if steps[number].start > earliest_end:
            break
        possible.append(number)
        earliest_end = min(earliest_end, steps[number].end)
    return possible


def narrowed(steps):
    """Return the same steps, each between the moments that reads of lists leave to it.

    A step that these reads leave no moment to ends before it starts.
    """
    listings = [step for step in steps if step.kind == "read" and step.consumers is not None]
    listings.sort(key=lambda each_listing: (each_listing.start, each_listing.end))
    lives = defaultdict(list)
    for number, step in enumerate(steps):
        if step.changes and step.consumers:
            for consumer, (write, is_present) in step.consumers.items():
                lives[consumer].append((write, is_present, number))
    windows = [[step.start, step.end] for step in steps]
    for consumer, life in lives.items():
        life.sort()
        for listing in listings:
            least, most = _writes_seen(life, listing.consumers.get(consumer), listing, steps)
            for write, _, number in life:
                if write <= least:
                    windows[number][1] = min(windows[number][1], listing.end)
                elif write > most:
                    windows[number][0] = max(windows[number][0], listing.start)
    return [
        changed(step, start=start, end=end)
        for step, (start, end) in zip(steps, windows, strict=True)
    ]


def _writes_seen(life, shown_write, listing, steps):
    """The least and the most writes of a consumer's life that a listing can have come after."""
    if shown_write is not None:
        return shown_write, shown_write
    deletions = [0, *(write for write, is_present, _ in life if not is_present)]
    certain = max(
        (write_number for write_number, _, at in life if steps[at].end < listing.start), default=0
    )
    possible = max(
        (write_number for write_number, _, at in life if steps[at].start <= listing.end), default=0
    )
    # Where nothing is left, the windows will show it.
    fitting = [
        write_number for write_number in deletions if certain <= write_number <= possible
    ] or deletions
    return min(fitting), max(fitting)
