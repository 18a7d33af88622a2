# SPDX-License-Identifier: Apache-2.0
"""How full providers are at most, or at least, if others may come to them.

Slots that are still to be filled may be served by whoever serves others already, or by somebody who is not
in the candidate yet. Which of these make it fullest is a fractional program: with a guess of the share, each
adds what it has above or below that, and the best sum shows a better guess (Dinkelbach, "On nonlinear
fractional programming", 1967). No share is guessed twice, and few are.
"""

from dataclasses import dataclass

import numpy as np

from treeclaim.forest.order.totals import Floats
from treeclaim.forest.table.columns import Integers, Mask


@dataclass(frozen=True, slots=True, eq=False)
class Added:
    """Who may come to some candidates.

    Attributes:
        used, capacity: Of each that may come, shape (k,).
        may: Which of them may come to each candidate, shape (candidates, k).
        fewest, most: How many come to each candidate, shape (candidates,).
    """

    used: Floats
    capacity: Floats
    may: Mask
    fewest: Integers
    most: Integers

    def share(self, used: Floats, capacity: Floats, *, is_greatest: bool) -> Floats:
        """Return the greatest or the least share that is used, given what candidates have already."""
        best: Floats = np.ones(len(used))
        is_better = np.ones(len(used), dtype=np.bool_)
        is_first = True
        while is_better.any():
            some = np.flatnonzero(is_better)
            taken = self._taken(some, best[some], is_greatest=is_greatest)
            found = used[some] + taken @ self.used
            found /= np.maximum(capacity[some] + taken @ self.capacity, 1)
            if not is_first:
                is_better[some] = found > best[some] if is_greatest else found < best[some]
                found, some = found[is_better[some]], some[is_better[some]]
            best[some] = found
            is_first = False
        return best

    def _taken(self, some: Integers, guess: Floats, *, is_greatest: bool) -> Mask:
        """Return who comes to some candidates if each counts by what it has beside a share."""
        worth = self.used - guess[:, None] * self.capacity
        worth = np.where(self.may[some], worth if is_greatest else -worth, -np.inf)
        order = np.argsort(-worth, axis=1, kind="stable")
        ranked = np.take_along_axis(worth, order, axis=1)
        number = np.arange(len(self.used))
        comes = (number < self.fewest[some, None]) | (ranked > 0)
        comes &= (number < self.most[some, None]) & (ranked > -np.inf)
        taken = np.zeros_like(comes)
        np.put_along_axis(taken, order, comes, axis=1)
        return taken
