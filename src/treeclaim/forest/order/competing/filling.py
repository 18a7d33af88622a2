# SPDX-License-Identifier: Apache-2.0
"""The most that slots can get of providers together: dynamic programming over what is still to be served.

Slots that ask for the same are of one kind, and a state says how many of each kind have been served. One
provider after the other is added: each may serve any of the states that it has room for. So nothing is
counted twice, however many orders there are, and the result is exact. With few kinds there are few states;
with as many kinds as slots, there are 2^slots of them: to fill providers with unlike amounts is bin
packing, which is NP-hard.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.table.columns import Integers, Mask, search_ascending

NEVER = -(2**62)
"""The worth of what cannot be; worths are between -2⁶⁰ and 2⁶⁰ in all."""

ABOVE = -1
"""The branch of what is above all branches."""

HARDLY = -(2**61)
"""What is below it was made of `NEVER`."""

_LEFT_OPEN = 2**17
"""As many pairs it counts to leave one open, which is bounded otherwise then."""

_MOST_AT_ONCE = 2**26
"""How many pairs are added up in turn at most; it takes some tenths of a second."""

Matrix = npt.NDArray[np.int64]


class States(NamedTuple):
    """How many slots of each kind are served: all ways from none to some numbers.

    Attributes:
        counts: By state and kind, int64, the last state is that of all.
        rest, taken: Numbers of two states that make up a third, for all of these in turn.
        starts: Where those of each state begin.
    """

    counts: Matrix
    rest: Integers
    taken: Integers
    starts: Integers


def pairs_of(numbers: tuple[int, ...]) -> float:
    """Return how many ways there are to divide all states of some numbers in two."""
    return float(np.prod([(count + 1) * (count + 2) / 2 for count in numbers]))


def states_of(numbers: tuple[int, ...]) -> States:
    """Return all states of so many slots of each kind."""
    whole = taken = np.zeros(1, dtype=np.int64)
    size = 1
    # The last kind is the last digit of a state's number; no digit of a part exceeds that of the whole.
    for count in reversed(numbers):
        digits = range(count + 1)
        taken = np.concatenate(
            [
                np.tile(np.arange(digit + 1) * size, len(taken)) + taken.repeat(digit + 1)
                for digit in digits
            ]
        )
        whole = np.concatenate([digit * size + whole.repeat(digit + 1) for digit in digits])
        size *= count + 1
    shape = [count + 1 for count in numbers]
    counts = np.stack(np.unravel_index(np.arange(size), shape), axis=1)
    return States(counts, whole - taken, taken, search_ascending(whole, np.arange(size)))


class Allowance:
    """How many pairs may be added up in one search, so that bounds take hardly longer than what they spare."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._left = float(thresholds.MOST_FILLINGS_ADDED)
        self._wanted = 0.0

    def has_more(self, made: int) -> bool:
        """Tell whether more may be added up, or how much is left is saved for what is wanted next.

        Args:
            made: How many partial candidates were made up to now.
        """
        earned = made * thresholds.PAIRS_A_CANDIDATE
        self._left = thresholds.MOST_FILLINGS_ADDED + earned - self._spent
        return self._left > self._wanted

    def affords(self, pairs: float) -> bool:
        """Tell whether this many pairs do not take too long; if so, spend them.

        What is wanted first, where little is known, takes longest and spares most. So nothing else is
        afforded before it is.
        """
        if pairs > _MOST_AT_ONCE:
            self._spend(_LEFT_OPEN)
            return False
        if max(pairs, self._wanted) > self._left:
            self._wanted = max(pairs, self._wanted)
            return False
        self._wanted = 0.0
        self._spend(pairs)
        return True

    def _spend(self, pairs: float) -> None:
        self._spent += pairs
        self._left -= pairs


class Filling(ABC):
    """What some providers are worth, one after the other, and what they are together."""

    def __init__(self, size: int, worth: Matrix, check: Callable[[], None]) -> None:
        """Take what is added up.

        Args:
            size: How many states there are.
            worth: What each provider is worth by how much it serves, nothing more at first.
            check: Called for each provider; may raise to give up.
        """
        self._size = size
        self._worth = worth
        self._check = check

    def most(self, hot: Mask | None = None, inside: Mask | None = None) -> int:
        """Return the most that all providers are worth together; `NEVER` if they cannot serve all.

        Args:
            hot: States in which some slot is served that has to be inside.
            inside: The providers that may serve such a slot.
        """
        worth = self._worth
        if hot is not None and inside is not None:
            worth = np.where(hot[None, :] & ~inside[:, None], NEVER, worth)
        idle = _idle(worth)
        best = self._nothing()
        for at in np.flatnonzero(~idle).tolist():
            self._check()
            best = self._with(best, at, worth)
        return _known(int(best[-1]) + int(worth[idle, 0].sum()))

    def most_instead(self, instead: Matrix) -> Integers:
        """Return the most where one provider is worth something else, for each in its turn.

        Returns:
            By provider; `NEVER` where they cannot serve all.
        """
        before = [self._nothing()]
        for at in range(len(instead) - 1):
            self._check()
            before.append(self._with(before[-1], at, self._worth))
        most = np.full(len(instead), NEVER, dtype=np.int64)
        after = self._nothing()
        for at in reversed(range(len(instead))):
            self._check()
            # Two states make up that of all where one is as far from the first as the other from the last.
            most[at] = (self._with(before[at], at, instead) + after[::-1]).max()
            after = self._with(after, at, self._worth)
        return np.where(most > HARDLY, most, NEVER)

    def most_apart(self, hot: Mask, inside: Mask, begun: Mask, branch: Integers) -> int:
        """Return the same where the slots that have to be inside are not all in one branch.

        Args:
            hot: States in which some slot is served that has to be inside.
            inside: The providers that may serve such a slot.
            begun: The providers that serve such a slot already.
            branch: The branch of each provider, equal ones together; `ABOVE` for the one above all.
        """
        nobody = self._nobody
        none, here, earlier, several = self._nothing(), nobody, nobody, nobody
        cold = np.where(hot[None, :] | begun[:, None], NEVER, self._worth)
        warm = np.where((hot[None, :] & inside[:, None]) | begun[:, None], self._worth, NEVER)
        is_warm: Mask = np.logical_or.reduce(warm > NEVER, axis=1)
        idle = ~is_warm & _idle(cold)
        last = None
        for at in np.flatnonzero(~idle).tolist():
            self._check()
            if branch[at] != last:
                earlier, here, last = np.maximum(earlier, here), nobody, branch[at]
            alone = crowded = nobody
            if is_warm[at]:
                some = np.maximum(none, here)
                crowded = np.maximum(earlier, several)
                if last == ABOVE:
                    some, crowded = nobody, np.maximum(some, crowded)
                alone, crowded = self._with(some, at, warm), self._with(crowded, at, warm)
            several = np.maximum(crowded, self._with(several, at, cold))
            here = np.maximum(alone, self._with(here, at, cold))
            earlier, none = self._with(earlier, at, cold), self._with(none, at, cold)
        return _known(int(several[-1]) + int(cold[idle, 0].sum()))

    @cached_property
    def _nobody(self) -> Integers:
        return np.full(self._size, NEVER, dtype=np.int64)

    def _nothing(self) -> Integers:
        best = self._nobody.copy()
        best[0] = 0
        return best

    @abstractmethod
    def _with(self, best: Integers, at: int, worth: Matrix) -> Integers:
        """Return the most for each state when one more provider serves a part of it.

        Args:
            best: The most without it; `_nobody` remains what it is.
            at: The provider.
            worth: What each is worth by how much it serves.
        """


class FillingByPairs(Filling):
    """What providers are worth that serve whole states: what one serves and the rest are tried in pairs."""

    def __init__(self, states: States, worth: Matrix, check: Callable[[], None]) -> None:
        """Take what is added up.

        Args:
            states: The states.
            worth: What each provider is worth that serves each, shape (providers, states).
            check: Called for each provider; may raise to give up.
        """
        super().__init__(len(states.counts), worth, check)
        self._states = states

    def _with(self, best: Integers, at: int, worth: Matrix) -> Integers:
        if best is self._nobody:
            return best
        states, offered = self._states, worth[at]
        if (offered[1:] == NEVER).all():
            sums = best + offered[0]
        else:
            sums = np.maximum.reduceat(best[states.rest] + offered[states.taken], states.starts)
        # What cannot be does not become less and less.
        joined: Integers = np.maximum(sums, NEVER)
        return joined


def _idle(worth: Matrix) -> Mask:
    """Tell which providers can serve nothing more."""
    idle: Mask = np.logical_and.reduce(worth[:, 1:] == NEVER, axis=1)
    return idle


def _known(most: int) -> int:
    return most if most > HARDLY else NEVER
