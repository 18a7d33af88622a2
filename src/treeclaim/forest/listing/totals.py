# SPDX-License-Identifier: Apache-2.0
"""Sums over the inventories of all matching providers, and of parts of them (page 99, section 3).

Every number that is summed is at least 0, and what is shown ends at 2**53 - 1. So sums are made in
floating point: as long as a sum is below that, it and all sums on the way to it are exact.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.forest.table.forest import Forest

GREATEST_SHOWN = 2**53 - 1
"""Of any number (contract page 98, section 1): what every reader of JSON reads exactly."""


class By(StrEnum):
    """What a part is."""

    TREE = "tree"
    AGGREGATE = "aggregate"
    TRAIT = "trait"


@dataclass(frozen=True, slots=True)
class ClassTotals:
    """Sums of one resource class (contract page 99, section 3), in the order of the answer.

    Attributes:
        total, reserved, capacity, used, free: Units, summed up; capacity as page 98, section 1,
            and what is free of each provider at least 0.
        largest_free: The most that a single provider has free.
        providers: How many have an inventory of the class.
    """

    total: int
    reserved: int
    capacity: int
    used: int
    free: int
    largest_free: int
    providers: int


Totals = dict[str, ClassTotals]
"""By name of the resource class, in order of the classes' ids."""


@dataclass(frozen=True, slots=True)
class Part:
    """One tree, aggregate or trait with its sums.

    Attributes:
        uuid: None for a trait.
        name: None for an aggregate.
        totals: Its sums.
        key: What stands in the marker of a page that ends here.
    """

    uuid: str | None
    name: str | None
    totals: Totals
    key: str


@dataclass(frozen=True, slots=True)
class Parts:
    """A page of parts.

    Attributes:
        parts: In order of creation (trees), else by uuid or name.
        next_after: Key behind which the next page begins; None if this is the last one.
    """

    parts: list[Part]
    next_after: str | None


@dataclass(frozen=True, slots=True)
class _Membership:
    """Which rows are in which of some parts; a row may be in several.

    Attributes:
        rows: Ascending.
        part: Number of the part of each of `rows`.
        count: How many parts there are.
    """

    rows: Rows
    part: Rows
    count: int


def totals_of(forest: Forest, rows: Rows, classes: Iterable[str] | None) -> Totals:
    """Return the sums over some rows.

    Args:
        forest: All providers.
        rows: Those that pass, ascending.
        classes: Names of the classes wanted, which exist; None for all.
    """
    whole = _Membership(rows, np.zeros(len(rows), dtype=np.int64), 1)
    return _sums(forest, whole, classes)[0]


def totals_of_aggregates(
    forest: Forest, rows: Rows, aggregates: Sequence[str]
) -> dict[str, Totals]:
    """Return the sums over those of some rows that are in each aggregate, or whose root is.

    Args:
        forest: All providers.
        rows: Those that pass, ascending.
        aggregates: Uuids; those without a provider are left out.
    """
    found = [_aggregate(forest, rows, uuid) for uuid in dict.fromkeys(aggregates)]
    parts = [part for part in found if len(part.rows)]
    sums = _sums(forest, _membership(parts), None)
    return {part.key: totals for part, totals in zip(parts, sums, strict=True)}


def parts_of(
    forest: Forest, rows: Rows, by: By, classes: Iterable[str] | None, *, after: str, limit: int
) -> Parts:
    """Return a page of parts, each of which has at least one of the rows.

    Args:
        forest: All providers.
        rows: Those that pass, ascending.
        by: What a part is.
        classes: Names of the classes wanted, which exist; None for all.
        after: Key behind which the page begins; empty for the first page.
        limit: How many parts at most.
    """
    found = _PARTS[by](forest, rows, after, limit + 1)
    shown = found[:limit]
    sums = _sums(forest, _membership(shown), classes)
    parts = [
        Part(part.uuid, part.name, totals, part.key)
        for part, totals in zip(shown, sums, strict=True)
    ]
    return Parts(parts, parts[-1].key if len(found) > limit else None)


@dataclass(frozen=True, slots=True)
class _Rows:
    """A part with its rows.

    Attributes:
        uuid, name, key: As in `Part`.
        rows: Those that pass, ascending.
    """

    uuid: str | None
    name: str | None
    key: str
    rows: Rows


def _membership(parts: Sequence[_Rows]) -> _Membership:
    return _Membership(
        np.concatenate([np.empty(0, dtype=np.int64), *(part.rows for part in parts)]),
        np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts]),
        len(parts),
    )


def _trees(forest: Forest, rows: Rows, after: str, most: int) -> list[_Rows]:
    roots = forest.root.values[rows]
    heads, first = np.unique(roots, return_index=True)
    ids = forest.id.values[heads]
    # Rows of a tree lie together, so each tree is a slice.
    ends = np.append(first[1:], len(rows))
    behind = np.flatnonzero(ids > int(after or 0))
    order = behind[np.argsort(ids[behind], kind="stable")][:most]
    return [
        _Rows(
            forest.uuid_of(head),
            forest.names([head])[0],
            str(forest.id.values[head]),
            rows[first[at] : ends[at]],
        )
        for at, head in zip(order.tolist(), heads[order].tolist(), strict=True)
    ]


def _aggregates(forest: Forest, rows: Rows, after: str, most: int) -> list[_Rows]:
    def members(uuid: str) -> Rows:
        return _aggregate(forest, rows, uuid).rows

    return _named(forest.known_aggregates(), members, after, most, is_uuid=True)


def _aggregate(forest: Forest, rows: Rows, uuid: str) -> _Rows:
    member = forest.in_any_aggregate([uuid])
    return _Rows(uuid, None, uuid, rows[member[rows] | member[forest.root.values[rows]]])


def _traits(forest: Forest, rows: Rows, after: str, most: int) -> list[_Rows]:
    catalogue = forest.catalogue.traits

    def owners(name: str) -> Rows:
        found: Rows = rows[forest.with_any_trait([catalogue[name].id])[rows]]
        return found

    return _named(catalogue, owners, after, most, is_uuid=False)


def _named(
    names: Iterable[str], rows_of: Callable[[str], Rows], after: str, most: int, *, is_uuid: bool
) -> list[_Rows]:
    found: list[_Rows] = []
    for name in sorted(name for name in names if name > after):
        rows = rows_of(name)
        if len(rows):
            found.append(_Rows(name if is_uuid else None, None if is_uuid else name, name, rows))
        if len(found) == most:
            break
    return found


_PARTS: dict[By, Callable[[Forest, Rows, str, int], list[_Rows]]] = {
    By.TREE: _trees,
    By.AGGREGATE: _aggregates,
    By.TRAIT: _traits,
}


def _sums(forest: Forest, parts: _Membership, classes: Iterable[str] | None) -> list[Totals]:
    found: list[Totals] = [{} for _ in range(parts.count)]
    wanted = None if classes is None else set(classes)
    for name, entry in forest.catalogue.resource_classes.items():
        columns = forest.classes.get(entry.id)
        if columns is None or (wanted is not None and name not in wanted):
            continue
        for part, totals in _of_class(columns, parts):
            found[part][name] = totals
    return found


def _of_class(columns: ClassInventories, parts: _Membership) -> list[tuple[int, ClassTotals]]:
    """Return the sums of those parts that have an inventory of a class."""
    has, indices = _indices(columns, parts.rows)
    part = parts.part[has]
    counts = np.bincount(part, minlength=parts.count)
    free = np.maximum(columns.free.values[indices], 0)
    # Capacity is kept as what is free and what is used together; what was cut off is beyond all
    # that is shown.
    capacity = np.maximum(columns.free.values[indices] + columns.used.values[indices], 0)

    def summed(values: npt.NDArray[Any]) -> list[int]:
        weights = np.minimum(values.astype(np.float64), float(GREATEST_SHOWN))
        sums: npt.NDArray[Any] = np.bincount(part, weights=weights, minlength=parts.count)
        return [_shown(total) for total in sums.tolist()]

    largest = np.zeros(parts.count, dtype=np.int64)
    np.maximum.at(largest, part, free)
    totals = zip(
        summed(columns.total.values[indices]),
        summed(columns.reserved.values[indices]),
        summed(capacity),
        summed(columns.used.values[indices]),
        summed(free),
        map(_shown, largest.tolist()),
        counts.tolist(),
        strict=True,
    )
    return [(at, ClassTotals(*row)) for at, row in enumerate(totals) if row[-1]]


def _indices(columns: ClassInventories, rows: Rows) -> tuple[Mask, Rows]:
    """Find the indices of rows that need not ascend, and may be named twice."""
    distinct, where = np.unique(rows, return_inverse=True)
    has, indices = columns.indices_of(distinct)
    index_of = np.zeros(len(distinct), dtype=np.int64)
    index_of[has] = indices
    chosen: Mask = has[where]
    return chosen, index_of[where][chosen]


def _shown(number: float) -> int:
    return min(int(number), GREATEST_SHOWN)
