# SPDX-License-Identifier: Apache-2.0
"""The options of the slots of a request under some anchors."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treeclaim.forest.columns import Rows
from treeclaim.forest.forest import Forest
from treeclaim.forest.relation import Relation
from treeclaim.forest.windows import Window

Amounts = npt.NDArray[np.int64]
"""Units of one resource class, int64."""


@dataclass(frozen=True)
class Options:
    """The providers that may take a slot, for some anchors.

    Attributes:
        starts: Where each anchor's options begin, int64, shape (anchors + 1,).
        places: Providers, ascending within an anchor, int64, shape (options,).
        place_count: Number of places there are in all.
        room: By name of the class, for those that several slots ask for: most units that one
            candidate may take, int64, shape (options,).
    """

    starts: Rows
    places: Rows
    place_count: int
    room: Mapping[str, Amounts]

    @property
    def counts(self) -> Rows:
        """Return the number of options of each anchor, int64, shape (anchors,)."""
        counts: Rows = self.starts[1:] - self.starts[:-1]
        return counts

    @cached_property
    def keys(self) -> Rows:
        """Return `anchor * place_count + provider`, ascending, int64, shape (options,)."""
        anchors: Rows = np.arange(len(self.starts) - 1).repeat(self.counts)
        return anchors * self.place_count + self.places

    @cached_property
    def _by_place(self) -> Rows | None:
        """Return the option by place, -1 for none; None if a place is an option of two anchors.

        Only sharing providers are.
        """
        numbers = np.arange(len(self.places))
        found = np.full(self.place_count, -1, dtype=np.int64)
        found[self.places] = numbers
        return found if (found[self.places] == numbers).all() else None

    def option_of(self, anchors: Rows, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers of options, -1 where a place is none.

        Args:
            anchors: Index of the anchor of each row, int64, shape (n,).
            places: int64, shape (n, k).
        """
        # A table of all places is worth its making only if there is as much to look up.
        if places.size > self.place_count and self._by_place is not None:
            return self._by_place[places]
        keys = anchors[:, None] * self.place_count + places
        option = np.searchsorted(self.keys, keys)
        option[self.keys[np.minimum(option, len(self.keys) - 1)] != keys] = -1
        return option

    def sums(self, numbers: Amounts) -> Amounts:
        """Return, for each anchor, the sum of one number per option."""
        total = np.zeros(len(numbers) + 1, dtype=np.int64)
        np.cumsum(numbers, out=total[1:])
        return np.diff(total[self.starts])


def options_of(
    forest: Forest, relation: Relation, anchors: Rows, contested: Collection[str]
) -> Options:
    """Restrict a relation to some anchors (ascending places).

    Args:
        forest: Where to look up the room there is.
        relation: Pairs of anchor and provider.
        anchors: Places of roots, ascending.
        contested: Names of the classes that several slots ask for, this one among them.
    """
    order = forest.order
    first = relation.anchor.searchsorted(anchors)
    window = Window(first, relation.anchor.searchsorted(anchors, side="right") - first)
    starts = np.zeros(len(anchors) + 1, dtype=np.int64)
    window.counts.cumsum(out=starts[1:])
    if first[-1] + window.counts[-1] - first[0] == starts[-1]:
        places = relation.provider[first[0] : first[0] + starts[-1]]
    else:
        places = relation.provider[window.pairs()[1]]
    return Options(
        starts=starts,
        places=places,
        place_count=len(order.row),
        room={name: _room(forest, name, order.row[places]) for name in contested},
    )


def _room(forest: Forest, resource_class: str, rows: Rows) -> Amounts:
    columns = forest.classes[forest.catalogue.resource_classes[resource_class].id]
    return columns.room(columns.row.values.searchsorted(rows))
