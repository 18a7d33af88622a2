# SPDX-License-Identifier: Apache-2.0
"""Pairs of anchor and provider, and how they follow a change of one tree.

To find the pairs of all trees takes the longer the more trees there are. Whether a provider can serve
its own tree depends on that tree alone, so after a change of one tree only its rows are judged, and
what is behind them moves. Where providers are lent, a tree concerns others, and all is found anew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

import numpy as np

from treeclaim.forest.table.class_inventories import Indices
from treeclaim.forest.table.columns import Integers, Mask, Positions, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.order import Splice

_next_serial = count().__next__


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct pairs (anchor, provider) that suit a slot, regardless of amounts.

    Equal by identity. They are sorted by anchor, then by position of the provider.

    Attributes:
        starts: Where the pairs of each root begin, int64, shape (roots + 1,).
        provider: Place of each pair's provider, int64, shape (pairs,).
        indices: By class name: where the provider's inventory is among those of the class.
        sharing: Numbers of the pairs whose provider is a sharing one, ascending, int64.
        is_local: Whether each provider is in its anchor's tree.
        moment: Of the Forest, for which they hold.
        serial: Stands for these pairs in keys of caches, which would otherwise keep them alive.
    """

    starts: Integers
    provider: Positions
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
        """Tell for each root whether it has any pair, shape (roots,)."""
        reached: Mask = self.starts[1:] > self.starts[:-1]
        return reached


Serving = Callable[[Rows], tuple[Rows, Rows]]
"""Finds those of some rows that serve their own tree, and the sharing ones that are lent to others."""


def followed(forest: Forest, pairs: Pairs, serving: Serving) -> Pairs | None:
    """Return what has become of some pairs; None if they are to be found anew."""
    if pairs.moment == forest.moment:
        return pairs
    splices = forest.splices_since(pairs.moment)
    if splices is None or not pairs.is_local or len(pairs.sharing):
        return None
    for splice in splices:
        rows = np.arange(splice.row, splice.row + splice.size)
        local, lent = serving(rows)
        if len(lent) or _have_sharing(forest, local):
            return None
        pairs = _spliced(forest, pairs, splice, local)
    return replace(pairs, moment=forest.moment, serial=_next_serial())


def _have_sharing(forest: Forest, rows: Rows) -> bool:
    trait_id = forest.catalogue.sharing_trait_id
    return trait_id is not None and any(trait_id in forest.trait_ids(row) for row in rows.tolist())


def _spliced(forest: Forest, pairs: Pairs, splice: Splice, local: Rows) -> Pairs:
    """Replace the pairs of one tree, whose rows may be dead by a later splice."""
    first, end = pairs.provider.searchsorted([splice.first, splice.end]).tolist()
    behind = pairs.provider[end:]
    here = np.full(splice.trees_now, first)
    starts_behind = pairs.starts[splice.tree + splice.trees_before :]
    return replace(
        pairs,
        starts=np.concatenate(
            [pairs.starts[: splice.tree], here, starts_behind + (len(local) - (end - first))]
        ),
        provider=np.concatenate(
            [
                pairs.provider[:first],
                local - splice.row + splice.first,
                behind + splice.shift if splice.shift else behind,
            ]
        ),
        indices={
            name: _spliced_indices(forest, name, indices, (first, end), local)
            for name, indices in pairs.indices.items()
        },
    )


def _spliced_indices(
    forest: Forest, name: str, indices: Indices, replaced: tuple[int, int], local: Rows
) -> Indices:
    first, end = replaced
    if first == end and not len(local):
        return indices
    if isinstance(indices, slice):
        indices = np.arange(indices.start, indices.stop)
    _, new = forest.class_inventories(name).indices_of(local)
    return np.concatenate([indices[:first], new, indices[end:]])
