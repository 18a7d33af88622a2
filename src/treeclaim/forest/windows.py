# SPDX-License-Identifier: Apache-2.0
"""Pairs of partial candidates and options, without writing them all down."""

from dataclasses import dataclass

import numpy as np

from treeclaim.forest.columns import Rows


@dataclass(frozen=True, slots=True)
class Window:
    """Which options each of some partial candidates has in a step: a range of option numbers.

    Attributes:
        first: int64, shape (n,).
        end: Behind the last one, int64, shape (n,).
    """

    first: Rows
    end: Rows

    @property
    def size(self) -> int:
        """Return the number of pairs."""
        return int((self.end - self.first).sum())

    def rows_within(self, budget: float) -> int:
        """Return how many first rows have at most `budget` options together, at least one."""
        pairs = np.cumsum(self.end - self.first)
        return max(int(np.searchsorted(pairs, budget, side="right")), 1)

    def first_rows(self, rows: int) -> "Window":
        """Return the window of the first rows."""
        return Window(self.first[:rows], self.end[:rows])

    def pairs(self) -> tuple[Rows, Rows]:
        """Return the row and the option number of each pair, in order; int64, shape (pairs,)."""
        counts = self.end - self.first
        row = np.repeat(np.arange(len(counts)), counts)
        return row, np.arange(len(row)) + np.repeat(self.first - self._before(), counts)

    def pair_of(self, option: Rows) -> tuple[Rows, Rows]:
        """Find the pairs of each row with some options of its own.

        Args:
            option: Option numbers, int64, shape (n, k).

        Returns:
            The flat indices of those that lie in their row's window, and the number of the pair
            (as `pairs` counts) of each; both int64.
        """
        inside = (option >= self.first[:, None]) & (option < self.end[:, None])
        at = np.flatnonzero(inside)
        pair = option + (self._before() - self.first)[:, None]
        return at, pair.reshape(-1)[at]

    def _before(self) -> Rows:
        counts = self.end - self.first
        before: Rows = np.cumsum(counts) - counts
        return before
