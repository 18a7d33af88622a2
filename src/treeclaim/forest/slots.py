# SPDX-License-Identifier: Apache-2.0
"""The slots of a request with their options under each anchor that is left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treeclaim.forest.columns import Rows
from treeclaim.forest.forest import Forest
from treeclaim.forest.relation import Relation

Amounts = npt.NDArray[np.int64]
"""Units of one resource class, int64."""


@dataclass(frozen=True, slots=True)
class Options:
    """The providers that may take a slot, by anchor. Slots that ask the same share one of these.

    Attributes:
        starts: Where each anchor's options begin, int64, shape (anchors + 1,).
        places: Providers, ascending within an anchor, int64, shape (options,).
        keys: `anchor * places in all + provider`, ascending, int64, shape (options,).
        room: By class name: most units one candidate may take, int64, shape (options,).
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


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a candidate that takes one provider.

    Attributes:
        suffix: The group's suffix, "" for a slot of the unsuffixed group.
        resources: What the provider gives here: amounts by class name; empty for a resourceless
            group.
        options: Who may take it.
    """

    suffix: str
    resources: Mapping[str, int]
    options: Options


def options_of(
    forest: Forest, relation: Relation, anchors: Rows, classes: Sequence[str]
) -> Options:
    """Restrict a relation to some anchors (ascending places) and look up the room there is."""
    order = forest.order
    count = len(order.row)
    index = np.full(count, -1, dtype=np.int64)
    index[anchors] = np.arange(len(anchors))
    anchor = index[relation.anchor]
    kept = np.flatnonzero(anchor >= 0)
    anchor, places = anchor[kept], relation.provider[kept]
    return Options(
        starts=np.searchsorted(anchor, np.arange(len(anchors) + 1)),
        places=places,
        keys=anchor * count + places,
        room={name: _room(forest, name, order.row[places]) for name in classes},
    )


def _room(forest: Forest, resource_class: str, rows: Rows) -> Amounts:
    columns = forest.classes[forest.catalogue.resource_classes[resource_class].id]
    return columns.room(np.searchsorted(columns.row.values, rows))
