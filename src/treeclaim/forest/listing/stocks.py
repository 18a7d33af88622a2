# SPDX-License-Identifier: Apache-2.0
"""The inventories of many providers, copied out of the Forest, so that nobody waits while they are summed up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.listing.parts import By
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Integers, Rows
from treeclaim.forest.table.forest import Forest

Units = npt.NDArray[np.int64]
"""Amounts of a class, each at least 0."""

_GROUPS_FOR_A_CLASS = 32
"""Lists of members that are copied in the time that the columns of a class take."""

_NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Stocks:
    """Inventories, copied out of the Forest, by class; arrays have one item for each.

    Attributes:
        names, class_ids: Names and ids of the classes, in order of their ids.
        number: Which of the classes it is of, ascending.
        at: Where its row is among those that pass.
        total, reserved, capacity, used, free: Its amounts.
        held: What holds have of it; None where it is not asked for.
    """

    names: Sequence[str]
    class_ids: Sequence[int]
    number: Integers
    at: Integers
    total: Units
    reserved: Units
    capacity: Units
    used: Units
    free: Units
    held: Units | None = None


def takes_long(forest: Forest, rows: Rows, classes: Iterable[str] | None, by: By | None) -> bool:
    """Tell whether to copy what `summable` copies takes longer than anybody may wait."""
    found = _classes(forest, rows, classes)
    inventories = sum(min(len(columns), len(rows)) for _, _, columns in found)
    groups = forest.aggregate_links.group_count if by is By.AGGREGATE else 0
    return (
        inventories > thresholds.INVENTORIES_COPIED
        or len(found) + groups // _GROUPS_FOR_A_CLASS > thresholds.CLASSES_COPIED
    )


def _classes(
    forest: Forest, rows: Rows, classes: Iterable[str] | None
) -> list[tuple[str, int, ClassInventories]]:
    """Return the names, ids and columns of those classes that rows may have, in order of the ids."""
    known = forest.catalogue.class_by_id
    if classes is not None:
        entries = [forest.catalogue.resource_classes[name] for name in classes]
        class_ids = {entry.id for entry in entries} & forest.classes.keys()
    elif len(rows) < len(forest.classes):
        class_ids = forest.classes_of(rows)
    else:
        class_ids = set(forest.classes)
    # A deleted class still has columns, without living rows.
    return [
        (known[number].name, number, forest.classes[number])
        for number in sorted(class_ids & known.keys())
    ]


def stocks_of(forest: Forest, rows: Rows, classes: Iterable[str] | None) -> Stocks:
    """Copy the inventories that some rows, ascending, have of some classes; None for all classes."""
    names, class_ids, found = [], [], []
    for name, class_id, columns in _classes(forest, rows, classes):
        at, indices = columns.among(rows)
        if len(at):
            names.append(name)
            class_ids.append(class_id)
            found.append((columns, at, indices))

    def joined(column: str) -> Units:
        parts = [getattr(columns, column).values[indices] for columns, _, indices in found]
        return np.concatenate([_NOTHING, *parts])

    free, used = joined("free"), joined("used")
    return Stocks(
        names,
        class_ids,
        np.repeat(np.arange(len(found)), [len(at) for _, at, _ in found]),
        np.concatenate([_NOTHING, *(at for _, at, _ in found)]),
        joined("total"),
        joined("reserved"),
        # Capacity is kept as what is free and what is used together; what was cut off is beyond all
        # that is shown.
        np.maximum(free + used, 0),
        used,
        np.maximum(free, 0),
    )
