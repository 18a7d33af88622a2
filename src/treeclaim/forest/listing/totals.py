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

from treeclaim.forest.listing.parts import (
    By,
    FoundParts,
    Pairs,
    Stocks,
    Units,
    copied_parts,
    stocks_of,
)
from treeclaim.forest.table.columns import Integers, Rows, search_ascending
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldColumns
from treeclaim.forest.table.sums import shown, sums_by

_PARTS_BETWEEN_LOOKS = 1_000
_INVENTORIES_TOGETHER = 100_000


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
    """Return the sums with held amounts (contract page 100, section 5).

    Attributes:
        held: Units, summed up; part of `used`.
    """

    held: int


Totals = dict[str, ClassTotals]
"""Totals by name of the resource class, in order of the classes' ids."""


@dataclass(frozen=True, slots=True)
class Part:
    """A tree, aggregate or trait with its sums.

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
class Summable:
    """The inventories to sum up; their use needs no Forest any more.

    Attributes:
        stocks: The inventories of the rows that pass.
        found_parts: The parts; None where no parts are asked for.
        ids: Ids of the providers of these rows.
    """

    stocks: Stocks
    found_parts: FoundParts | None
    ids: Rows

    def with_held(self, held: HeldColumns) -> "Summable":
        """Return the same with what holds have at the same moment."""
        stocks = self.stocks
        class_ids = np.array(stocks.class_ids, dtype=np.int64)[stocks.number]
        units = held.of_each(self.ids[stocks.at], class_ids)
        return replace(self, stocks=replace(stocks, held=units))

    def totals(self) -> Totals:
        """Return the sums over all rows that pass."""
        stocks, totals = self.stocks, Totals()
        for number, sums in _sums(stocks, stocks.number, slice(None)):
            totals[stocks.names[number]] = sums
        return totals

    def parts(self, look: Callable[[], None] = _go_on) -> Parts | None:
        """Return the page of parts, each of which has at least one of the rows that pass.

        Args:
            look: Called again and again; raises where the time is over.
        """
        if self.found_parts is None:
            return None
        labels, pairs, next_after = self.found_parts.page()
        look()
        sums = _sums_of_parts(self.stocks, pairs, len(self.ids), len(labels), look)
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
    return Summable(stocks_of(forest, rows, classes), parts, forest.id.values[rows])


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
    aggregate_uuids = frozenset(aggregates)
    copied = copied_parts(
        forest, rows, By.AGGREGATE, after="", limit=len(aggregate_uuids), among=aggregate_uuids
    )
    of_all = Summable(stocks_of(forest, rows, None), copied, forest.id.values[rows])
    parts = of_all.with_held(held).parts()
    return {str(part.uuid): part.totals for part in parts.parts} if parts else {}


def _sums_of_parts(
    stocks: Stocks, pairs: Pairs, rows: int, count: int, look: Callable[[], None]
) -> list[Totals]:
    """Return the sums of so many parts of so many rows, in time that grows with who is in them."""
    sums: list[Totals] = [{} for _ in range(count)]
    by_row = np.argsort(stocks.at, kind="stable")
    counts = np.bincount(stocks.at, minlength=rows)
    starts = counts.cumsum() - counts
    ends = counts[pairs.at].cumsum()
    begin = 0
    while begin < len(pairs.part):
        look()
        # As many parts as have about so many inventories, one at least.
        most = (int(ends[begin - 1]) if begin else 0) + _INVENTORIES_TOGETHER
        last = min(int(search_ascending(ends, most)), len(pairs.part) - 1)
        end = int(search_ascending(pairs.part, pairs.part[last], side="right"))
        at = pairs.at[begin:end]
        several = counts[at]
        behind = np.arange(int(several.sum())) - np.repeat(several.cumsum() - several, several)
        which = by_row[np.repeat(starts[at], several) + behind]
        part = np.repeat(pairs.part[begin:end], several)
        keys = part * len(stocks.names) + stocks.number[which]
        for key, totals in _sums(stocks, keys, which, look):
            number, of_class = divmod(key, len(stocks.names))
            sums[number][stocks.names[of_class]] = totals
        begin = end
    look()
    return sums


def _sums(
    stocks: Stocks, keys: Integers, which: Integers | slice, look: Callable[[], None] = _go_on
) -> Iterator[tuple[int, ClassTotals]]:
    """Yield keys, ascending, with the sums of those of some inventories that have each."""
    distinct_keys, key, counts = np.unique(keys, return_inverse=True, return_counts=True)

    def summed(units: Units) -> list[int]:
        sums: list[int] = sums_by(key, units[which], len(distinct_keys)).tolist()
        return sums

    largest = np.zeros(len(distinct_keys), dtype=np.int64)
    np.maximum.at(largest, key, stocks.free[which])
    totals = zip(
        summed(stocks.total),
        summed(stocks.reserved),
        summed(stocks.capacity),
        summed(stocks.used),
        summed(stocks.free),
        map(shown, largest.tolist()),
        counts.tolist(),
        strict=True,
    )
    held = None if stocks.held is None else summed(stocks.held)
    for at, (number, row) in enumerate(zip(distinct_keys.tolist(), totals, strict=True)):
        if not at % _PARTS_BETWEEN_LOOKS:
            look()
        yield number, ClassTotals(*row) if held is None else HeldTotals(*(*row, held[at]))
