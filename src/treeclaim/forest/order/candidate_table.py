# SPDX-License-Identifier: Apache-2.0
"""Candidates as a table: which provider of each candidate gives how much of a class to a group.

The table is stored by column: a share is one provider of each candidate, so the long form (candidate,
group, class, provider, amount) is the concatenation of all shares. A candidate whose divided amount has
fewer parts than another one's has shares of 0 units.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import Integers, Mask, Rows, Trees

CandidateRows = npt.NDArray[Any]
"""Candidates: rows of providers, int64, shape (candidates, slots), or `SplitCandidate` objects, shape (candidates,)."""


class Share(NamedTuple):
    """Units of one class that one provider of each candidate gives to a group.

    Attributes:
        suffix: The group.
        name: The class.
        slot: The slot that the provider takes; the parts of a divided amount share one number.
        position: Rows of the providers, shape (candidates,).
        amount: Units, one number or one for each candidate; 0 if the candidate has no such part.
    """

    suffix: str
    name: str
    slot: int
    position: Rows
    amount: "int | Integers"

    @property
    def is_present(self) -> "Mask | np.bool_":
        """Return which candidates have the share."""
        return np.greater(self.amount, 0)


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """Candidates of one search.

    Attributes:
        count: Number of candidates.
        shares: What providers give.
        served: Suffix, rows and presence of each provider of a group, also where it gives nothing.
        tree: Number of the tree by row.
        sharing: Which rows are sharing providers; None if all providers are of the anchor's tree.
    """

    count: int
    shares: list[Share]
    served: list[tuple[str, Rows, "Mask | np.bool_"]]
    tree: Trees
    sharing: Mask | None

    def of_class(self, name: str) -> list[Share]:
        """Return the shares of a class."""
        return [share for share in self.shares if share.name == name]

    @cached_property
    def own_trees(self) -> Trees:
        """Return the only tree of each candidate, where all providers are of the anchor's tree."""
        return self.tree[self.shares[0].position]

    @cached_property
    def trees(self) -> tuple[Choices, Mask]:
        """Return the trees of each candidate: those of sharing providers only if all providers share.

        Returns:
            Numbers of trees, shape (candidates, k), and which of them count; no tree counts twice.
        """
        if self.sharing is None:
            return self.own_trees[:, None], np.ones((self.count, 1), dtype=np.bool_)
        givers = list({id(share.position): share for share in self.shares}.values())
        positions = np.stack([share.position for share in givers], axis=1)
        is_present = np.stack(
            [np.broadcast_to(share.is_present, self.count) for share in givers], axis=1
        )
        shares = self.sharing[positions]
        is_shared = (shares | ~is_present).all(axis=1, keepdims=True)
        trees = self.tree[positions]
        return trees, first_of_each(trees, is_present & (~shares | is_shared))


def first_of_each(numbers: Choices, counts: Mask) -> Mask:
    """Return which of the numbers that count in a row stand there for the first time."""
    first = counts.copy()
    for column in range(1, numbers.shape[1]):
        again = (numbers[:, :column] == numbers[:, [column]]) & counts[:, :column]
        first[:, column] &= ~again.any(axis=1)
    return first
