# SPDX-License-Identifier: Apache-2.0
"""Copies the inventories and parts of a cloud that are summed, so that no request waits meanwhile.

A part is a tree, an aggregate or a trait. Which providers are in each is linear in memberships: a pass over
all rows for each aggregate took 700 ms where each of ten thousand hosts has one of its own.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Integers, Mask, Rows, ascending, search_ascending
from treeclaim.forest.table.forest import Forest

Units = npt.NDArray[np.int64]
"""Amounts of a class, each at least 0."""

_GROUPS_FOR_A_CLASS = 32
"""Lists of members that are copied in the time that the columns of a class take."""

_NOTHING = np.empty(0, dtype=np.int64)


class By(StrEnum):
    """Kinds of parts."""

    TREE = "tree"
    AGGREGATE = "aggregate"
    TRAIT = "trait"


@dataclass(frozen=True, slots=True)
class Pairs:
    """The parts of the rows that pass; a row may be in several.

    Attributes:
        part: Numbers of parts, ascending.
        at: Where the row is among those that pass.
    """

    part: Integers
    at: Integers


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a part.

    Attributes:
        uuid: None for a trait.
        name: None for an aggregate.
        key: What stands in the marker of a page that ends here.
    """

    uuid: str | None
    name: str | None
    key: str


@dataclass(frozen=True, slots=True)
class FoundParts:
    """Parts that may be shown, copied out of the Forest.

    Attributes:
        label: Returns the label of a part, by its number.
        pairs: Works out which rows are in them.
        limit: How many are shown at most.
    """

    label: Callable[[int], Label]
    pairs: Callable[[], Pairs]
    limit: int

    def page(self) -> tuple[list[Label], Pairs, str | None]:
        """Return those parts that have anybody in them, as many as are shown.

        Returns:
            Their labels; their pairs, with numbers as on the page; and the key behind which the
            next page begins, None if this is the last one.
        """
        pairs = self.pairs()
        is_first = np.ones(len(pairs.part), dtype=np.bool_)
        np.not_equal(pairs.part[1:], pairs.part[:-1], out=is_first[1:])
        present = pairs.part[is_first]
        shown = present[: self.limit]
        labels = [self.label(number) for number in shown.tolist()]
        end = int(search_ascending(pairs.part, shown[-1], side="right")) if len(shown) else 0
        number = np.cumsum(is_first[:end]) - 1
        next_after = labels[-1].key if len(present) > self.limit else None
        return labels, Pairs(number, pairs.at[:end]), next_after


def copied_parts(
    forest: Forest,
    rows: Rows,
    by: By,
    *,
    after: str,
    limit: int,
    among: Collection[str] | None = None,
) -> FoundParts:
    """Copy out of the Forest which parts there are, and which rows are in them.

    Args:
        forest: All providers.
        rows: Those that pass, ascending.
        by: What a part is.
        after: Key behind which the parts begin; empty for all.
        limit: How many are shown at most.
        among: Only these aggregates; None for all.
    """
    rows = ascending(rows)
    if by is By.TREE:
        return _trees(forest, rows, int(after or 0), limit)
    if by is By.TRAIT:
        return _traits(forest, rows, after, limit)
    return _aggregates(forest, rows, after, limit, among)


def _trees(forest: Forest, rows: Rows, after: int, limit: int) -> FoundParts:
    heads, tree = np.unique(forest.root.values[rows], return_inverse=True)
    ids = forest.id.values[heads]
    behind = np.flatnonzero(ids > after)
    # One more than is shown tells whether there is a next page.
    order = behind[np.argsort(ids[behind], kind="stable")][: limit + 1]
    uuids = forest.uuid.values[heads[order]].tolist()
    names, keys = forest.names(heads[order].tolist()), ids[order].tolist()

    def pairs() -> Pairs:
        number = np.full(len(heads), -1)
        number[order] = np.arange(len(order))
        part = number[tree]
        at = np.argsort(part, kind="stable")[np.count_nonzero(part < 0) :]
        return Pairs(part[at], at)

    def label(number: int) -> Label:
        return Label(uuids[number].decode(), names[number], str(keys[number]))

    return FoundParts(label, pairs, limit)


def _traits(forest: Forest, rows: Rows, after: str, limit: int) -> FoundParts:
    owners = forest.trait_links.lists()
    lists = {
        name: owners[trait.id]
        for name, trait in forest.catalogue.traits.items()
        if name > after and trait.id in owners
    }
    names = sorted(lists)

    def pairs() -> Pairs:
        part, row = _flat([lists[name] for name in names])
        at, passes = _places(rows, row)
        return Pairs(part[passes], at[passes])

    return FoundParts(lambda number: Label(None, names[number], names[number]), pairs, limit)


def _aggregates(
    forest: Forest, rows: Rows, after: str, limit: int, among: Collection[str] | None
) -> FoundParts:
    members = forest.aggregate_links.lists()
    uuids = sorted(uuid for uuid in members if uuid > after and (among is None or uuid in among))
    # Where rows are in their trees never changes: a tree of another shape gets other rows.
    root, end = forest.root.values, forest.end.values

    def pairs() -> Pairs:
        part, row = _flat([members[uuid] for uuid in uuids])
        is_root = root[row] == row
        at, passes = _places(rows, row)
        alone = passes & ~is_root
        # Whatever is below a root is in what the root is in, and a tree is an interval of rows.
        first = search_ascending(rows, row[is_root])
        counts = search_ascending(rows, end[row[is_root]]) - first
        begins = np.repeat(first - (np.cumsum(counts) - counts), counts)
        part = np.concatenate([part[alone], np.repeat(part[is_root], counts)])
        at = np.concatenate([at[alone], begins + np.arange(len(begins))])
        # A row that is in an aggregate by itself and by its root counts once.
        width = max(len(rows), 1)
        return Pairs(*np.divmod(np.unique(part * width + at), width))

    return FoundParts(lambda number: Label(uuids[number], None, uuids[number]), pairs, limit)


def _flat(lists: Sequence[Rows]) -> tuple[Integers, Rows]:
    """Return all rows of some lists, each with the number of its list."""
    number = np.repeat(np.arange(len(lists)), [len(rows) for rows in lists])
    return number, np.concatenate([np.empty(0, dtype=np.int64), *lists])


def _places(rows: Rows, sought_rows: Rows) -> tuple[Integers, Mask]:
    """Return where wanted rows are among some ascending ones, and which of them exist."""
    at = search_ascending(rows, sought_rows)
    is_there = np.zeros(len(sought_rows), dtype=np.bool_)
    inside = np.flatnonzero(at < len(rows))
    is_there[inside] = rows[at[inside]] == sought_rows[inside]
    return at, is_there


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
    columns_of_classes = _classes(forest, rows, classes)
    inventories = sum(min(len(columns), len(rows)) for _, _, columns in columns_of_classes)
    groups = forest.aggregate_links.group_count if by is By.AGGREGATE else 0
    return (
        inventories > thresholds.INVENTORIES_COPIED
        or len(columns_of_classes) + groups // _GROUPS_FOR_A_CLASS > thresholds.CLASSES_COPIED
    )


def _classes(
    forest: Forest, rows: Rows, classes: Iterable[str] | None
) -> list[tuple[str, int, ClassInventories]]:
    """Return the names, ids and columns of those classes that rows may have, in order of the ids."""
    entry_by_id = forest.catalogue.class_by_id
    if classes is not None:
        entries = [forest.catalogue.resource_classes[name] for name in classes]
        class_ids = {entry.id for entry in entries} & forest.classes.keys()
    elif len(rows) < len(forest.classes):
        class_ids = forest.classes_of(rows)
    else:
        class_ids = set(forest.classes)
    # A deleted class still has columns, without living rows.
    return [
        (entry_by_id[number].name, number, forest.classes[number])
        for number in sorted(class_ids & entry_by_id.keys())
    ]


def stocks_of(forest: Forest, rows: Rows, classes: Iterable[str] | None) -> Stocks:
    """Copy the inventories that some rows, ascending, have of some classes; None for all classes."""
    names, class_ids, inventories = [], [], []
    for name, class_id, columns in _classes(forest, rows, classes):
        at, indices = columns.among(rows)
        if len(at):
            names.append(name)
            class_ids.append(class_id)
            inventories.append((columns, at, indices))

    def joined(column: str) -> Units:
        parts = [getattr(columns, column).values[indices] for columns, _, indices in inventories]
        return np.concatenate([_NOTHING, *parts])

    free, used = joined("free"), joined("used")
    return Stocks(
        names,
        class_ids,
        np.repeat(np.arange(len(inventories)), [len(at) for _, at, _ in inventories]),
        np.concatenate([_NOTHING, *(at for _, at, _ in inventories)]),
        joined("total"),
        joined("reserved"),
        # Capacity is kept as what is free and what is used together; what was cut off is beyond all
        # that is shown.
        np.maximum(free + used, 0),
        used,
        np.maximum(free, 0),
    )
