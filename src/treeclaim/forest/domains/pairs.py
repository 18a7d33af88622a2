# SPDX-License-Identifier: Apache-2.0
"""Pairs of anchor and provider, and how they follow a change of one tree; pairs that a partial candidate may take.

To find the pairs of all trees takes the longer the more trees there are. Whether a provider can serve
its own tree depends on that tree alone, so after a change of one tree only its rows are judged. Where
providers are lent, a tree concerns others, and all is found anew.

Pairs of partial candidates and options are not written down: those of each candidate are a range.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

import numpy as np

from treeclaim.forest.domains.filters import sharing_rows
from treeclaim.forest.table.class_inventories import Indices
from treeclaim.forest.table.columns import (
    Integers,
    Mask,
    Rows,
    expand_ranges,
    read_only,
    search_ascending,
)
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.order import Splice

_next_serial = count().__next__


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct pairs (anchor, provider) that suit a slot, regardless of amounts.

    Equal by identity. They are sorted by anchor, then by provider, both in canonical order.

    Attributes:
        starts: Where the pairs of each root begin, int64, shape (roots + 1,).
        provider: Row of each pair's provider, int64, shape (pairs,).
        indices: By class name: where the provider's inventory is among those of the class.
        sharing: Numbers of the pairs whose provider is a sharing one, ascending, int64.
        is_local: Whether each provider is in its anchor's tree.
        moment: The moment of the Forest for which they hold.
        serial: Stands for these pairs in keys of caches, which would otherwise keep them alive; the
            same after they have followed changes of single trees.
    """

    starts: Integers
    provider: Rows
    indices: Mapping[str, Indices]
    sharing: Integers
    is_local: bool
    moment: int
    serial: int = field(default_factory=_next_serial)

    @cached_property
    def nbytes(self) -> int:
        """Return the bytes that this takes; see `ByteCache`."""
        indices = sum(
            indices.nbytes for indices in self.indices.values() if isinstance(indices, np.ndarray)
        )
        return self.starts.nbytes + self.provider.nbytes + self.sharing.nbytes + indices

    @cached_property
    def reached(self) -> Mask:
        """Return for each root whether it has any pair, shape (roots,)."""
        reached: Mask = self.starts[1:] > self.starts[:-1]
        return read_only(reached)


Serving = Callable[[Rows], tuple[Rows, Rows]]
"""Finds those of some rows that serve their own tree, and the sharing ones that are lent to others."""


def follow_pairs(forest: Forest, pairs: Pairs, serving: Serving) -> Pairs | None:
    """Return what has become of some pairs; None if they have to be found again.

    Their columns may be written in place, so the former pairs must not be used afterwards.
    """
    splices = forest.splices.since(pairs.moment)
    if splices is None or not pairs.is_local or len(pairs.sharing):
        return None
    for splice in splices:
        local, lent = serving(np.arange(splice.rows.start, splice.rows.stop))
        if len(lent) or sharing_rows(forest)[local].any():
            return None
        pairs = _splice(forest, pairs, splice, local)
    return replace(pairs, moment=forest.splices.mark)


def _splice(forest: Forest, pairs: Pairs, splice: Splice, local: Rows) -> Pairs:
    """Replace the pairs of one tree; its rows may be dead by a later splice."""
    tree, behind = splice.tree, splice.tree + splice.trees_before
    first, end = int(pairs.starts[tree]), int(pairs.starts[behind])
    added_pairs = len(local) - (end - first)
    starts = pairs.starts
    if added_pairs or splice.trees_now != splice.trees_before:
        here = np.full(splice.trees_now, first)
        starts = np.concatenate([starts[:tree], here, starts[behind:] + added_pairs])
    indices = {
        name: _indices(forest, name, indices, (first, end), local)
        for name, indices in pairs.indices.items()
    }
    provider = _replace_part(pairs.provider, (first, end), local)
    return replace(pairs, starts=starts, provider=provider, indices=indices)


def _indices(
    forest: Forest, name: str, indices: Indices, replaced: tuple[int, int], local: Rows
) -> Indices:
    if replaced[0] == replaced[1] and not len(local):
        return indices
    if isinstance(indices, slice):
        indices = np.arange(indices.start, indices.stop)
    _, new = forest.class_inventories(name).indices_of(local)
    return _replace_part(indices, replaced, new)


def _replace_part(column: Integers, replaced: tuple[int, int], new: Integers) -> Integers:
    """Replace a part of a column: in place, if the new one is as long."""
    first, end = replaced
    if len(new) == end - first:
        column[first:end] = new
        return column
    return np.concatenate([column[:first], new, column[end:]])


@dataclass(frozen=True, slots=True)
class Window:
    """The options of partial candidates in a step: a range of option numbers for each.

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
        return row, expand_ranges(self.first, self.counts)

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
        before = self.counts.cumsum() - self.counts
        pair = (entry + (before - self.first)[:, None]).reshape(-1)
        if inside.all():
            return np.arange(len(pair)), pair
        at = np.flatnonzero(inside)
        return at, pair.take(at)
