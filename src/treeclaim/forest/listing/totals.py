# SPDX-License-Identifier: Apache-2.0
"""Sums over the inventories of all matching providers, and of parts of them (page 99, section 3).

What is to be summed up is first copied out of the Forest, by one pass over the rows that pass and
the memberships of those parts that may be shown. All the rest works on the copies: it takes as long
as ten thousand parts take to be written, and nobody needs to wait for that.

How sums are made, and where they end: `table/sums.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from treeclaim.forest.listing.parts import By, FoundParts, Pairs, copied_parts
from treeclaim.forest.table.columns import Mask, Rows, search_ascending
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldColumns
from treeclaim.forest.table.sums import shown, sums_by

Units = npt.NDArray[np.int64]
"""Amounts of a class, each at least 0."""

_PARTS_BETWEEN_LOOKS = 1_000


def _go_on() -> None:
    """Look at no deadline, where no client waits."""


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


@dataclass(frozen=True, slots=True)
class HeldTotals(ClassTotals):
    """The same with what holds have (contract page 100, section 5).

    Attributes:
        held: Units, summed up; part of `used`.
    """

    held: int


Totals = dict[str, ClassTotals]
"""By name of the resource class, in order of the classes' ids."""


@dataclass(frozen=True, slots=True)
class Part:
    """One tree, aggregate or trait with its sums.

    Attributes:
        uuid: None for a trait.
        name: None for an aggregate.
        totals: Its sums.
    """

    uuid: str | None
    name: str | None
    totals: Totals


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
class Stock:
    """The inventories of one class, copied out of the Forest.

    Attributes:
        name: Of the class.
        has: Which of the rows that pass have one.
        total, reserved, capacity, used, free: Of those that have.
        held: What holds have of these; None where it is not asked for.
        class_id: Its id.
    """

    name: str
    has: Mask
    total: Units
    reserved: Units
    capacity: Units
    used: Units
    free: Units
    held: Units | None
    class_id: int


@dataclass(frozen=True, slots=True)
class Summable:
    """What is to be summed up; to use it needs no Forest any more.

    Attributes:
        count: How many rows pass.
        stocks: Their inventories, in order of the classes' ids.
        found: The parts; None where no parts are asked for.
        ids: Of the providers of these rows.
    """

    count: int
    stocks: Sequence[Stock]
    found: FoundParts | None
    ids: Rows

    def with_held(self, held: HeldColumns) -> "Summable":
        """Return the same with what holds have at the same moment."""
        order = np.argsort(self.ids)
        sorted_ids = self.ids[order]
        stocks = []
        for stock in self.stocks:
            providers, amounts = held.of_class(stock.class_id)
            known = np.isin(providers, sorted_ids)
            units = np.zeros(self.count, dtype=np.int64)
            units[order[search_ascending(sorted_ids, providers[known])]] = amounts[known]
            stocks.append(replace(stock, held=units[stock.has]))
        return replace(self, stocks=stocks)

    def totals(self) -> Totals:
        """Return the sums over all rows that pass."""
        return _sums(self.stocks, Pairs.of_all(self.count), 1)[0]

    def parts(self, look: Callable[[], None] = _go_on) -> Parts | None:
        """Return the page of parts, each of which has at least one of the rows that pass.

        Args:
            look: Called again and again; raises where the time is over.
        """
        if self.found is None:
            return None
        labels, pairs, next_after = self.found.page()
        look()
        sums = _sums(self.stocks, pairs, len(labels), look)
        look()
        parts = [
            Part(label.uuid, label.name, totals)
            for label, totals in zip(labels, sums, strict=True)
        ]
        return Parts(parts, next_after)


def summable(
    forest: Forest,
    rows: Rows,
    classes: Iterable[str] | None,
    by: By | None = None,
    *,
    after: str = "",
    limit: int = 0,
) -> Summable:
    """Copy out of the Forest what is to be summed up.

    Args:
        forest: All providers.
        rows: Those that pass, ascending.
        classes: Names of the classes wanted, which exist; None for all.
        by: What a part is; None for no parts.
        after: Key behind which the page of parts begins; empty for the first page.
        limit: How many parts at most.
    """
    parts = None if by is None else copied_parts(forest, rows, by, after=after, limit=limit)
    ids = forest.id.values[rows].copy()
    return Summable(len(rows), _stocks(forest, rows, classes), parts, ids)


def totals_of(forest: Forest, rows: Rows, held: HeldColumns) -> Totals:
    """Return the sums over some rows at once, with what holds have; see `summable`."""
    return summable(forest, rows, None).with_held(held).totals()


def totals_of_aggregates(
    forest: Forest, rows: Rows, aggregates: Sequence[str], held: HeldColumns
) -> dict[str, Totals]:
    """Return the sums over those of some rows that are in each aggregate, or whose root is.

    Args:
        forest: All providers.
        rows: Those that pass, ascending.
        aggregates: Uuids; those without a provider are left out.
        held: What holds have.
    """
    wanted = frozenset(aggregates)
    copied = copied_parts(forest, rows, By.AGGREGATE, after="", limit=len(wanted), among=wanted)
    of_all = Summable(len(rows), _stocks(forest, rows, None), copied, forest.id.values[rows])
    parts = of_all.with_held(held).parts()
    return {str(part.uuid): part.totals for part in parts.parts} if parts else {}


def _stocks(forest: Forest, rows: Rows, classes: Iterable[str] | None) -> list[Stock]:
    wanted = None if classes is None else set(classes)
    stocks = []
    for name, entry in forest.catalogue.resource_classes.items():
        columns = forest.classes.get(entry.id)
        if columns is None or (wanted is not None and name not in wanted):
            continue
        has, indices = columns.indices_of(rows)
        if not len(indices):
            continue
        free, used = columns.free.values[indices], columns.used.values[indices]
        stocks.append(
            Stock(
                name,
                has,
                columns.total.values[indices],
                columns.reserved.values[indices],
                # Capacity is kept as what is free and what is used together; what was cut off is
                # beyond all that is shown.
                np.maximum(free + used, 0),
                used,
                np.maximum(free, 0),
                None,
                entry.id,
            )
        )
    return stocks


def _sums(
    stocks: Iterable[Stock], pairs: Pairs, count: int, look: Callable[[], None] = _go_on
) -> list[Totals]:
    """Return the sums of so many parts."""
    sums: list[Totals] = [{} for _ in range(count)]
    for stock in stocks:
        look()
        for number, (part, totals) in enumerate(_of_class(stock, pairs, count)):
            if not number % _PARTS_BETWEEN_LOOKS:
                look()
            sums[part][stock.name] = totals
    return sums


def _of_class(stock: Stock, pairs: Pairs, count: int) -> Iterator[tuple[int, ClassTotals]]:
    """Yield the sums of those parts that have an inventory of a class."""
    has = stock.has[pairs.at]
    part = pairs.part[has]
    # How many of the rows before one have an inventory is where its own is.
    which = (np.cumsum(stock.has) - 1)[pairs.at[has]]
    counts = np.bincount(part, minlength=count)

    def summed(units: Units) -> list[int]:
        return [int(total) for total in sums_by(part, units[which], count)]

    largest = np.zeros(count, dtype=np.int64)
    np.maximum.at(largest, part, stock.free[which])
    totals = zip(
        summed(stock.total),
        summed(stock.reserved),
        summed(stock.capacity),
        summed(stock.used),
        summed(stock.free),
        map(shown, largest.tolist()),
        counts.tolist(),
        strict=True,
    )
    held = None if stock.held is None else summed(stock.held)
    for at, row in enumerate(totals):
        if row[-1]:
            yield at, ClassTotals(*row) if held is None else HeldTotals(*(*row, held[at]))
