# SPDX-License-Identifier: Apache-2.0
"""How many consumers of requests fit into trees, and how many more or fewer after something is taken.

Parts of several requests that want the same classes are counted together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.domains.consumed import are_any
from treeclaim.forest.order.mixes.counting import Part
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.table.columns import Integers, Mask, Rows, search_ascending
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import GREATEST

Counts = Floats
"""Consumers, whole numbers, shape (states, requests)."""

_EXACT = 2**52


@dataclass(frozen=True, slots=True)
class Take:
    """What some candidates take of a class, each from one provider in the tree of its state.

    Attributes:
        state: Numbers of the states after which it is taken, ascending, none twice.
        position: The position of the provider.
        name: The name of the class.
        amount: Units: one number, or one for each.
    """

    state: Rows
    position: Rows
    name: str
    amount: "int | Integers"


def with_consumed(forest: Forest, takes: Sequence[Take]) -> list[Take]:
    """Return what candidates take, and what they consume by that (contract page 102, section 2)."""
    every = list(takes)
    if not are_any(forest):
        return every
    order, catalogue = forest.order, forest.catalogue
    for take in takes:
        columns = forest.class_inventories(take.name)
        indices = search_ascending(columns.row.values, order.row[take.position])
        for uses, some in forest.holdings.patterns.among(columns.pattern.values[indices]):
            for use in uses:
                amount = take.amount if isinstance(take.amount, int) else take.amount[some]
                every.append(
                    Take(
                        take.state[some],
                        take.position[some] + use.offset,
                        catalogue.class_by_id[use.class_id].name,
                        amount * use.amount,
                    )
                )
    return every


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Parts of several requests, none of which has two, that want the same classes.

    Attributes:
        names: The classes.
        requests: The number of each part's request.
        amounts: What each part wants of each class, shape (classes, parts).
        copies: How many slots each part has.
        positions: Providers that may serve any, ascending.
        row_of: The number among them by position; -1 for none.
        kind: The kind of each of them; those of one kind may serve the same parts.
        serves: Which parts each kind may serve, whatever is free, 1 or 0, shape (kinds, parts).
        starts: Where those of each tree begin, shape (roots + 1,).
        indices: Where each one's inventory of each class is.
    """

    names: tuple[str, ...]
    requests: Rows
    amounts: Floats
    copies: int
    positions: Rows
    row_of: Rows
    kind: Rows
    serves: Floats
    starts: Rows
    indices: tuple[Rows, ...]

    @property
    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        arrays = (self.positions, self.row_of, self.kind, self.starts, *self.indices)
        return self.serves.nbytes + sum(array.nbytes for array in arrays)

    def free(self, forest: Forest, rows: Rows) -> list[Integers]:
        """Return what is free of each class with some of the providers."""
        return [
            forest.class_inventories(name).free.values[indices[rows]]
            for name, indices in zip(self.names, self.indices, strict=True)
        ]

    def times(self, rows: Rows, free: Sequence[Integers]) -> Floats:
        """Return how often some providers serve each part, shape (rows, parts)."""
        times = _quotients(free[0], self.amounts[0])
        for some, amounts in zip(free[1:], self.amounts[1:], strict=True):
            np.minimum(times, _quotients(some, amounts), out=times)
        np.maximum(times, 0, out=times)
        if len(self.serves) > 1 or not self.serves.all():
            times *= self.serves[self.kind[rows]]
        return times

    def rows_of(self, trees: Rows) -> tuple[Rows, Rows]:
        """Return the providers in some trees, one after the other, and where those of each begin."""
        first = self.starts[trees]
        sizes = self.starts[trees + 1] - first
        begin = np.cumsum(sizes) - sizes
        rows = np.arange(int(sizes.sum())) + (first - begin).repeat(sizes)
        return rows, np.append(begin, len(rows))

    def counted(self, times: Floats, begin: Rows) -> Floats:
        """Return the count of each part in each state: the greatest *x* of the contract's second test."""
        sizes = begin[1:] - begin[:-1]
        counts = _sums(times, begin, sizes)
        if self.copies == 1:
            return counts
        counts //= self.copies
        state = np.arange(len(sizes)).repeat(sizes)
        while True:
            # Different groups need different providers: each contributes at most x.
            fewer = _sums(np.minimum(times, counts[state]), begin, sizes) // self.copies
            if (fewer == counts).all():
                return counts
            counts = fewer


def _quotients(free: Integers, amounts: Floats) -> Floats:
    """Return how often each amount is in each number, rounded down, at most `GREATEST`.

    Numbers below 2**52 are divided in floating point, which is exact for them, and much faster.
    """
    if free.max(initial=0) < _EXACT:
        quotients = free[:, None] / amounts
        np.floor(quotients, out=quotients)
        return quotients
    whole = free[:, None] // amounts.astype(np.int64)
    return np.minimum(whole, GREATEST).astype(np.float64)


def _sums(times: Floats, begin: Rows, sizes: Rows) -> Floats:
    if sizes.all() and len(sizes):
        all_sums: Floats = np.add.reduceat(times, begin[:-1], axis=0)
        return all_sums
    sums: Floats = np.zeros((len(sizes), times.shape[1]))
    some = sizes > 0
    if some.any():
        sums[some] = np.add.reduceat(times, begin[:-1][some], axis=0)
    return sums


class PartCounts:
    """Counts consumers of some requests that have parts, in many states of trees at once."""

    def __init__(
        self, forest: Forest, requests: Sequence[Sequence[Part]], allowed: Sequence[Mask | None]
    ) -> None:
        """Take what depends on the shape and on limits.

        Args:
            forest: Where to count.
            requests: The parts of each request.
            allowed: Which trees may be anchors of each, shape (roots,); None for all.
        """
        roots = len(forest.order.roots)
        self.possible = np.ones((roots, len(requests)), dtype=np.bool_)
        """Which trees have the providers that each request needs, whatever is free."""
        grouped: dict[tuple[tuple[str, ...], int, int], list[tuple[int, Part]]] = {}
        for number, parts in enumerate(requests):
            some = allowed[number]
            if some is not None:
                self.possible[:, number] &= some
            times: dict[tuple[tuple[str, ...], int], int] = {}
            for part in parts:
                self.possible[:, number] &= part.pairs.reached
                names = tuple(sorted(part.amounts))
                key = names, len(part.slots)
                times[key] = times.get(key, 0) + 1
                if names:
                    grouped.setdefault((*key, times[key]), []).append((number, part))
        self._groups = [_grouped(forest, members) for members in grouped.values()]

    @property
    def nbytes(self) -> int:
        """Return the memory that it takes."""
        return self.possible.nbytes + sum(group.nbytes for group in self._groups)

    def kinds(self, forest: Forest) -> Rows:
        """Return a number by position: providers with the same differ at most in what is used."""
        kinds = np.zeros(len(forest.order.row), dtype=np.int64)
        for group in self._groups:
            number = np.zeros(len(kinds), dtype=np.int64)
            number[group.positions] = group.kind + 1
            kinds = joined(kinds, number)
        return kinds

    def now(self, forest: Forest, trees: Rows) -> tuple[Counts, list[Floats]]:
        """Return how many fit into some trees, and the numbers that `then` goes on from."""
        counts = np.where(self.possible[trees], float(GREATEST), 0.0)
        kept = []
        for group in self._groups:
            rows, begin = group.rows_of(trees)
            served = group.counted(group.times(rows, group.free(forest, rows)), begin)
            kept.append(served)
            _lower(counts, group, served)
        return counts, kept

    def then(
        self, forest: Forest, trees: Rows, kept: Sequence[Floats], takes: Sequence[Take]
    ) -> Counts:
        """Return how many fit after something was taken.

        Args:
            forest: Where to count.
            trees: The tree of each state.
            kept: What `now` returned for these, to be written into.
            takes: What is taken in each state.
        """
        counts = np.where(self.possible[trees], float(GREATEST), 0.0)
        for group, served in zip(self._groups, kept, strict=True):
            touching = [take for take in takes if take.name in group.names]
            if not touching:
                after = served
            elif group.copies == 1:
                after = _changed_sums(group, forest, served, touching)
            else:
                after = _counted_again(group, forest, trees, touching)
            _lower(counts, group, after)
        return counts


def _lower(counts: Counts, group: _Group, served: Floats) -> None:
    """Let no more fit of the requests of a group than the group serves."""
    if len(group.requests) == counts.shape[1]:
        # Each request is there once, in its place.
        np.minimum(counts, served, out=counts)
    else:
        counts[:, group.requests] = np.minimum(counts[:, group.requests], served)


def _changed_sums(group: _Group, forest: Forest, sums: Floats, takes: Sequence[Take]) -> Floats:
    """Return sums over providers of which some give something."""
    with_rows = [(take, group.row_of[take.position]) for take in takes]
    if len(takes) == 1 and with_rows[0][1].min(initial=0) >= 0:
        ((take, rows),) = with_rows
        free = group.free(forest, rows)
        less = -group.times(rows, free)
        free[group.names.index(take.name)] -= take.amount
        less += group.times(rows, free)
        sums[take.state] += less
        return sums
    count = max(len(group.positions), 1)
    keys = np.concatenate([(take.state * count + rows)[rows >= 0] for take, rows in with_rows])
    if len(takes) > 1:
        keys = np.unique(keys)
    state, rows = keys // count, keys % count
    free = group.free(forest, rows)
    less = -group.times(rows, free)
    for take, at in with_rows:
        served = at >= 0
        where = search_ascending(keys, (take.state * count + at)[served])
        # A state takes only once what a take says, so no place is written twice.
        free[group.names.index(take.name)][where] -= _some(take.amount, served)
    less += group.times(rows, free)
    if len(takes) > 1:
        np.add.at(sums, state, less)
    else:
        sums[state] += less
    return sums


def _counted_again(group: _Group, forest: Forest, trees: Rows, takes: Sequence[Take]) -> Floats:
    """Count again the states in which something was taken."""
    rows, begin = group.rows_of(trees)
    free = group.free(forest, rows)
    for take in takes:
        at = group.row_of[take.position]
        served = at >= 0
        state = take.state[served]
        where = begin[state] + at[served] - group.starts[trees[state]]
        free[group.names.index(take.name)][where] -= _some(take.amount, served)
    return group.counted(group.times(rows, free), begin)


def _some(amount: "int | Integers", served: Mask) -> "int | Integers":
    return amount if isinstance(amount, int) else amount[served]


def _grouped(forest: Forest, members: Sequence[tuple[int, Part]]) -> _Group:
    order = forest.order
    names = tuple(sorted(members[0][1].amounts))
    pairs = list({id(part.pairs): part.pairs for _, part in members}.values())
    positions = np.unique(np.concatenate([part_pairs.provider for part_pairs in pairs]))
    row_of = np.full(len(order.row), -1, dtype=np.int64)
    row_of[positions] = np.arange(len(positions))
    indices = [
        forest.class_inventories(name).indices_of(order.row[positions])[1] for name in names
    ]
    serves = np.zeros((len(positions), len(members)), dtype=np.bool_)
    kind = np.zeros(len(positions), dtype=np.int64)
    for number, (_, part) in enumerate(members):
        serves[row_of[part.pairs.provider], number] = True
        for name, some in zip(names, indices, strict=True):
            columns = forest.class_inventories(name)
            serves[:, number] &= columns.admits(some, part.amounts[name])
        kind = joined(kind, serves[:, number].astype(np.int64))
    _, first = np.unique(kind, return_index=True)
    counts = np.bincount(order.tree[positions], minlength=len(order.roots))
    return _Group(
        names=names,
        requests=np.array([number for number, _ in members]),
        amounts=np.array([[float(part.amounts[name]) for _, part in members] for name in names]),
        copies=len(members[0][1].slots),
        positions=positions,
        row_of=row_of,
        kind=kind,
        serves=serves[first].astype(np.float64),
        starts=np.concatenate([[0], counts.cumsum()]),
        indices=tuple(indices),
    )


def joined(kinds: Rows, others: Rows) -> Rows:
    """Return numbers, from 0 on, that are equal where both of two numbers are."""
    _, numbers = np.unique(kinds * (others.max(initial=0) + 1) + others, return_inverse=True)
    return numbers
