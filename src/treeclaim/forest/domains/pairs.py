# SPDX-License-Identifier: Apache-2.0
"""Pairs of anchor and provider, their updates after changes of trees, and windows of options.

Finding the pairs of all trees takes longer the more trees there are. Whether a provider can serve
its own tree depends on that tree alone, so after a change of one tree only its rows are examined.
With sharing providers a tree affects other trees, and all pairs are found again.

Pairs of partial candidates and options are not stored: those of each candidate are a range.
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

    Pairs are compared by identity. They are sorted by anchor, then by provider, both in canonical order.

    Attributes:
        starts: The first pair of each root, and the end, int64, shape (roots + 1,).
        provider: Row of each pair's provider, int64, shape (pairs,).
        indices: By class name: the index of each provider's inventory of the class.
        sharing: Numbers of the pairs with a sharing provider, ascending, int64.
        is_local: Whether each provider is in its anchor's tree.
        moment: The mark of the Forest's splices for which the pairs hold.
        serial: Identifies the pairs in keys of caches without keeping them alive; it stays the same when
            the pairs follow changes of single trees.
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
        """Return the bytes of the pairs; see `ByteCache`."""
        indices = sum(
            indices.nbytes for indices in self.indices.values() if isinstance(indices, np.ndarray)
        )
        return self.starts.nbytes + self.provider.nbytes + self.sharing.nbytes + indices

    @cached_property
    def reached(self) -> Mask:
        """Return which roots have a pair, shape (roots,)."""
        reached: Mask = self.starts[1:] > self.starts[:-1]
        return read_only(reached)


FindProviders = Callable[[Rows], tuple[Rows, Rows]]
"""Finds the rows that serve their own tree, and the sharing ones that serve others."""


def follow_pairs(forest: Forest, pairs: Pairs, serving: FindProviders) -> Pairs | None:
    """Return pairs after the latest changes of trees; None if they must be found again.

    The former pairs must not be used afterwards, as their columns may be written in place.
    """
    splices = forest.splices.entries_since(pairs.moment)
    if splices is None or not pairs.is_local or len(pairs.sharing):
        return None
    for splice in splices:
        local, lent = serving(np.arange(splice.rows.start, splice.rows.stop))
        if len(lent) or sharing_rows(forest)[local].any():
            return None
        pairs = _splice_pairs(forest, pairs, splice, local)
    return replace(pairs, moment=forest.splices.mark)


def _splice_pairs(forest: Forest, pairs: Pairs, splice: Splice, local: Rows) -> Pairs:
    """Replace the pairs of one tree; a later splice may have marked its rows as dead."""
    tree, behind = splice.tree, splice.tree + splice.trees_before
    first, end = int(pairs.starts[tree]), int(pairs.starts[behind])
    added_pairs = len(local) - (end - first)
    starts = pairs.starts
    if added_pairs or splice.trees_now != splice.trees_before:
        start = np.full(splice.trees_now, first)
        starts = np.concatenate([starts[:tree], start, starts[behind:] + added_pairs])
    indices = {
        name: _splice_indices(forest, name, indices, (first, end), local)
        for name, indices in pairs.indices.items()
    }
    provider = _replace_part(pairs.provider, (first, end), local)
    return replace(pairs, starts=starts, provider=provider, indices=indices)


def _splice_indices(
    forest: Forest, name: str, indices: Indices, replaced: tuple[int, int], local: Rows
) -> Indices:
    if replaced[0] == replaced[1] and not len(local):
        return indices
    if isinstance(indices, slice):
        indices = np.arange(indices.start, indices.stop)
    _, new_indices = forest.class_inventories(name).indices_of(local)
    return _replace_part(indices, replaced, new_indices)


def _replace_part(column: Integers, replaced: tuple[int, int], new_values: Integers) -> Integers:
    """Replace a range of a column, in place if the length stays the same."""
    first, end = replaced
    if len(new_values) == end - first:
        column[first:end] = new_values
        return column
    return np.concatenate([column[:first], new_values, column[end:]])


@dataclass(frozen=True, slots=True)
class Window:
    """The options of partial candidates in a step: a range of option numbers for each.

    Attributes:
        first: The first option, int64, shape (n,).
        counts: The number of options, int64, shape (n,).
    """

    first: Integers
    counts: Integers

    @property
    def size(self) -> int:
        """Return the number of pairs."""
        return int(self.counts.sum())

    def rows_within(self, budget: float) -> int:
        """Return how many leading rows have at most `budget` options together, at least one."""
        pairs = self.counts.cumsum()
        return max(int(search_ascending(pairs, budget, side="right")), 1)

    def first_rows(self, rows: int) -> "Window":
        """Return the window of the leading rows."""
        return Window(self.first[:rows], self.counts[:rows])

    def pairs(self) -> tuple[Integers, Integers]:
        """Return the row and the option number of each pair, in order; int64, shape (pairs,)."""
        row = np.arange(len(self.counts)).repeat(self.counts)
        return row, expand_ranges(self.first, self.counts)

    def pair_of(self, entry: Integers) -> tuple[Integers, Integers]:
        """Find the pairs of rows with options.

        Args:
            entry: Option numbers of each row, int64, shape (n, k).

        Returns:
            The flat indices of the options within their row's window, and the number (as in `pairs`) of the
            pair of each; both int64.
        """
        first = self.first[:, None]
        inside = (entry >= first) & (entry < first + self.counts[:, None])
        before = self.counts.cumsum() - self.counts
        pair = (entry + (before - self.first)[:, None]).reshape(-1)
        if inside.all():
            return np.arange(len(pair)), pair
        at = np.flatnonzero(inside)
        return at, pair.take(at)
