# SPDX-License-Identifier: Apache-2.0
"""Which trees were written since a moment, for those who keep something for each tree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Trees
from treeclaim.forest.table.forest import Forest


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment in the log of a class.

    Attributes:
        columns: The class's.
        moment: What was written before is counted.
    """

    columns: ClassInventories
    moment: int


def marks_of(classes: Iterable[ClassInventories]) -> Sequence[Mark]:
    """Return the present moment in the log of each of some classes."""
    return [
        Mark(columns, 0 if columns.written is None else columns.written.mark)
        for columns in classes
    ]


def written_since(forest: Forest, marks: Sequence[Mark]) -> Trees | None:
    """Return the trees that were written since some moments; None if they are not known, or many."""
    trees: list[Trees] = [np.empty(0, dtype=np.int64)]
    for mark in marks:
        log = mark.columns.written
        indices = None if log is None else log.since(mark.moment)
        if indices is None:
            return None
        positions = forest.order.position[mark.columns.row.values[indices]]
        trees.append(forest.order.tree[positions])
    written = np.unique(np.concatenate(trees))
    return written if len(written) <= thresholds.FEW_TREES_WRITTEN else None
