# SPDX-License-Identifier: Apache-2.0
"""Trees, aggregates and traits as parts of a cloud, and which providers are in each.

All of that is linear in memberships: a pass over all rows for each aggregate took 700 ms where each
of ten thousand hosts has one of its own.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from treeclaim.forest.table.columns import Integers, Mask, Rows, ascending, search_ascending
from treeclaim.forest.table.forest import Forest


class By(StrEnum):
    """What a part is."""

    TREE = "tree"
    AGGREGATE = "aggregate"
    TRAIT = "trait"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which of the rows that pass are in which parts; a row may be in several.

    Attributes:
        part: Numbers of parts, ascending.
        at: Where the row is among those that pass.
    """

    part: Integers
    at: Integers


@dataclass(frozen=True, slots=True)
class Label:
    """What a part is called.

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


def _places(rows: Rows, wanted: Rows) -> tuple[Integers, Mask]:
    """Return where wanted rows are among some ascending ones, and which of them exist."""
    at = search_ascending(rows, wanted)
    is_there = np.zeros(len(wanted), dtype=np.bool_)
    inside = np.flatnonzero(at < len(rows))
    is_there[inside] = rows[at[inside]] == wanted[inside]
    return at, is_there
