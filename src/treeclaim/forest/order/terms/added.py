# SPDX-License-Identifier: Apache-2.0
"""How full providers are at most, or at least, if others may come to them.

Slots that are still to be filled may be served by providers that serve others already, or by ones that are not
in the candidate yet. Which of these make it fullest is a fractional program: with a guess of the share, each
adds what it has above or below that, and the best sum shows a better guess (Dinkelbach, "On nonlinear
fractional programming", 1967). No share is guessed twice, and few are.

At first the best come, whatever room they have. If that is too little, which others come instead is a covering
problem, which is solved by dynamic programming over what is missing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.order.totals import Floats
from treeclaim.forest.table.columns import Integers, Mask

_MOST_SUMS = 2**20
"""As many sums are made for each guess, in some milliseconds; with more, what is missing is rounded."""

_Sums = tuple[Floats, Floats]
"""What is used of the providers that come, and their capacity, for each of some candidates."""


@dataclass(frozen=True, slots=True, eq=False)
class Added:
    """Who may come to some candidates.

    Attributes:
        before: What is used of each candidate already, and its capacity, both of shape (candidates,).
        used, capacity: Used amount and capacity of each that may come, shape (k,).
        room: What each of them may give at most, a multiple of `unit`.
        unit: What amounts are multiples of.
        may: Which of them may come to each candidate, shape (candidates, k).
        fewest, most: How many come to each candidate, shape (candidates,).
        missing: What they have to give together at least, a multiple of `unit`.
    """

    before: _Sums
    used: Floats
    capacity: Floats
    room: Floats
    unit: int
    may: Mask
    fewest: Integers
    most: Integers
    missing: Floats

    def share(self, *, is_greatest: bool) -> Floats:
        """Return the greatest or the least share that is used of each candidate."""
        every = np.arange(len(self.may))
        best = self._improved(every, np.ones(len(every)), self._best, is_greatest=is_greatest)
        lacking = self._lacking(best, is_greatest=is_greatest)
        if len(lacking):
            best[lacking] = self._improved(
                lacking, best[lacking], self._covering, is_greatest=is_greatest
            )
        return best

    def _lacking(self, share: Floats, *, is_greatest: bool) -> Integers:
        """Return candidates, by number, whose share is due to some without room for what is missing."""
        is_short = self.may & (self.room < self.missing[:, None])
        short = np.flatnonzero(is_short.any(axis=1))
        if not len(short):
            return short
        comes = self._coming(short, self._worth(short, share[short], is_greatest=is_greatest))
        missing = self.missing[short]
        lacks = (comes @ self.room < missing) & (self.may[short] @ self.room >= missing)
        return short[lacks]

    def _improved(
        self,
        some: Integers,
        guess: Floats,
        sums: Callable[[Integers, Floats], _Sums],
        *,
        is_greatest: bool,
    ) -> Floats:
        """Return the shares of some candidates, given guesses of them.

        Args:
            some: The candidates, by number.
            guess: A guess for each.
            sums: Tells what those have who come and are worth most, given what each is worth.
            is_greatest: Whether the greatest shares are meant, or the least.
        """
        best = guess.copy()
        changed = np.arange(len(some))
        # Whatever the guess was, what is found is attained; from there on it only gets better.
        is_better: Callable[[Floats, Floats], Mask] = np.not_equal
        while len(changed):
            rows = some[changed]
            worth = self._worth(rows, best[changed], is_greatest=is_greatest)
            used, capacity = sums(rows, worth)
            shares = self.before[0][rows] + used
            shares /= np.maximum(self.before[1][rows] + capacity, 1)
            better = is_better(shares, best[changed])
            changed = changed[better]
            best[changed] = shares[better]
            is_better = np.greater if is_greatest else np.less
        return best

    def _worth(self, some: Integers, guess: Floats, *, is_greatest: bool) -> Floats:
        """Return what each that may come has beside a share, shape (some, k)."""
        worth = self.used - guess[:, None] * self.capacity
        return np.where(self.may[some], worth if is_greatest else -worth, -np.inf)

    def _best(self, some: Integers, worth: Floats) -> _Sums:
        comes = self._coming(some, worth)
        return comes @ self.used, comes @ self.capacity

    def _coming(self, some: Integers, worth: Floats) -> Mask:
        """Return the providers that come to some candidates, whatever room they have."""
        order = np.argsort(-worth, axis=1, kind="stable")
        ranked = np.take_along_axis(worth, order, axis=1)
        number = np.arange(len(self.used))
        is_in = (number < self.fewest[some, None]) | (ranked > 0)
        is_in &= (number < self.most[some, None]) & (ranked > -np.inf)
        comes = np.zeros_like(is_in)
        np.put_along_axis(comes, order, is_in, axis=1)
        return comes

    def _covering(self, some: Integers, worth: Floats) -> _Sums:
        """Return what the providers have that come to some candidates and have room for what is missing."""
        states = max(_MOST_SUMS // worth.size, 2)
        unit = max(np.ceil(self.missing[some].max() / (states - 1)), self.unit)
        missing = (self.missing[some] // unit).astype(np.int64)
        covered = np.arange(missing.max() + 1)
        best = np.full((len(covered), len(some)), -np.inf)
        best[0] = 0
        sums = np.zeros((2, *best.shape))
        for at, room in enumerate(np.ceil(self.room / unit).astype(np.int64).tolist()):
            rest = np.maximum(covered - room, 0)
            more = best[rest] + worth[:, at]
            is_more = more > best
            np.copyto(best, more, where=is_more)
            each = np.array([self.used[at], self.capacity[at]])
            np.copyto(sums, sums[:, rest] + each[:, None, None], where=is_more)
        used, capacity = sums[:, missing, np.arange(len(some))]
        return used, capacity
