# SPDX-License-Identifier: Apache-2.0
"""Pairs of partial candidates and options, without writing them all down."""

from dataclasses import dataclass

import numpy as np

from treeclaim.forest.table.columns import Integers, search_ascending


@dataclass(frozen=True, slots=True)
class Window:
    """Which options each of some partial candidates has in a step: a range of option numbers.

    Attributes:
        first: int64, shape (n,).
        counts: How many, int64, shape (n,).
    """

    first: Integers
    counts: Integers

    @property
    def size(self) -> int:
        """Return the number of pairs."""
        return int(self.counts.sum())

    def rows_within(self, budget: float) -> int:
        """Return how many first rows have at most `budget` options together, at least one."""
        pairs = self.counts.cumsum()
        return max(int(search_ascending(pairs, budget, side="right")), 1)

    def first_rows(self, rows: int) -> "Window":
        """Return the window of the first rows."""
        return Window(self.first[:rows], self.counts[:rows])

    def pairs(self) -> tuple[Integers, Integers]:
        """Return the row and the option number of each pair, in order; int64, shape (pairs,)."""
        row = np.arange(len(self.counts)).repeat(self.counts)
        return row, np.arange(len(row)) + (self.first - self._before()).repeat(self.counts)

    def pair_of(self, entry: Integers) -> tuple[Integers, Integers]:
        """Find the pairs of each row with some options of its own.

        Args:
            entry: Option numbers, int64, shape (n, k).

        Returns:
            The flat indices of those that lie in their row's window, and the number of the pair
            (as `pairs` counts) of each; both int64.
        """
        first = self.first[:, None]
        inside = (entry >= first) & (entry < first + self.counts[:, None])
        pair = (entry + (self._before() - self.first)[:, None]).reshape(-1)
        if inside.all():
            return np.arange(len(pair)), pair
        at = np.flatnonzero(inside)
        return at, pair.take(at)

    def _before(self) -> Integers:
        before: Integers = self.counts.cumsum() - self.counts
        return before
