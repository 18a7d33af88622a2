# SPDX-License-Identifier: Apache-2.0
"""The slots of a request, and their options under some anchors."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treeclaim.forest.columns import Rows
from treeclaim.forest.forest import Forest
from treeclaim.forest.relation import Relation

Amounts = npt.NDArray[np.int64]
"""Units of one resource class, int64."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a candidate that takes one provider.

    Attributes:
        suffix: The group's suffix, "" for a slot of the unsuffixed group.
        resources: What the provider gives here: amounts by class name; empty for a resourceless
            group.
        relation: Who may take it under which anchor; slots that ask the same have the same one.
    """

    suffix: str
    resources: Mapping[str, int]
    relation: Relation


@dataclass(frozen=True, slots=True)
class Options:
    """The providers that may take a slot, for some anchors.

    Attributes:
        starts: Where each anchor's options begin, int64, shape (anchors + 1,).
        places: Providers, ascending within an anchor, int64, shape (options,).
        keys: `anchor * places in all + provider`, ascending, int64, shape (options,).
        room: By name of the class, for those that several slots ask for: most units that one
            candidate may take, int64, shape (options,).
    """

    starts: Rows
    places: Rows
    keys: Rows
    room: Mapping[str, Amounts]

    @property
    def counts(self) -> Rows:
        """Return the number of options of each anchor, int64, shape (anchors,)."""
        return np.diff(self.starts)

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
    first, end = np.searchsorted(relation.anchor, [anchors[0], anchors[-1] + 1])
    pair_anchor, places = relation.anchor[first:end], relation.provider[first:end]
    index = np.searchsorted(anchors, pair_anchor)
    wanted = anchors[index] == pair_anchor
    if not wanted.all():
        index, places = index[wanted], places[wanted]
    starts = np.zeros(len(anchors) + 1, dtype=np.int64)
    np.cumsum(np.bincount(index, minlength=len(anchors)), out=starts[1:])
    return Options(
        starts=starts,
        places=places,
        keys=index * len(order.row) + places,
        room={name: _room(forest, name, order.row[places]) for name in contested},
    )


def _room(forest: Forest, resource_class: str, rows: Rows) -> Amounts:
    columns = forest.classes[forest.catalogue.resource_classes[resource_class].id]
    return columns.room(np.searchsorted(columns.row.values, rows))
