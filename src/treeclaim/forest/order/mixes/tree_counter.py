# SPDX-License-Identifier: Apache-2.0
"""Counts of requests in trees, now or after amounts are taken (contract page 101, definitions)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.order.mixes.request_counts import RequestCounts, RequestPart
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.table.columns import (
    GREATEST,
    Integers,
    Rows,
    expand_ranges,
    search_ascending,
)
from treeclaim.forest.table.forest import Forest

Counts = Floats
"""Numbers of consumers, whole, shape (states, requests)."""

_EXACT = 2**52
"""Below it, floating-point numbers represent integers exactly, and their division is much faster."""


class TakenAmounts(NamedTuple):
    """Units of one class that candidates, or states of trees, take from one provider each."""

    name: str
    rows: Rows
    amount: "int | Integers"
    """One number, or one for each row, which may be 0."""

    def select(self, selection: "Rows | slice") -> "TakenAmounts":
        """Return the amounts of the selected candidates or states."""
        amount = self.amount if isinstance(self.amount, int) else self.amount[selection]
        return TakenAmounts(self.name, self.rows[selection], amount)


def add_consumption(forest: Forest, takes: Sequence[TakenAmounts]) -> list[TakenAmounts]:
    """Return taken amounts with the amounts that they consume (contract page 102, section 2)."""
    all_takes = list(takes)
    for take in takes:
        for use, users in forest.uses_at(take.name, take.rows):
            rows, amount = take.rows.copy(), np.zeros_like(take.rows)
            rows[users] += use.offset
            amount[users] = np.multiply(take.select(users).amount, use.amount)
            name = forest.catalogue.class_by_id[use.class_id].name
            all_takes.append(TakenAmounts(name, rows, amount))
    return all_takes


@dataclass(frozen=True, slots=True, eq=False)
class _TestGroup:
    """Tests of several requests, at most one of each request, for the same classes.

    Attributes:
        names: The classes.
        copies: The *k* of the second test.
        are_apart: Whether each provider serves each consumer once.
        is_total: Whether these are first tests.
        requests: Number of the request of each test.
        amounts: Units, shape (classes, tests).
        keys: Tree times `width` plus row of each provider, ascending.
        width: A number above all rows.
        starts: Start of each tree in `keys`, shape (trees + 1,).
        serves: Mask of tests that a provider may serve, shape (providers, tests); None for all.
        indices: By class: the index of each provider's inventory.
    """

    names: tuple[str, ...]
    copies: int
    are_apart: bool
    is_total: bool
    requests: Rows
    amounts: Floats
    keys: Rows
    width: int
    starts: Rows
    serves: npt.NDArray[np.bool_] | None
    indices: tuple[Rows, ...]

    @property
    def nbytes(self) -> int:
        arrays = (self.keys, self.starts, self.serves, *self.indices)
        return sum(array.nbytes for array in arrays if array is not None)

    def get_free_units(self, forest: Forest, providers: Rows) -> list[Integers]:
        """Return the free units of each class at providers, by their numbers."""
        return [
            forest.class_inventories(name).free.values[indices[providers]]
            for name, indices in zip(self.names, self.indices, strict=True)
        ]

    def compute_shares(self, providers: Rows, free_units: Sequence[Integers]) -> Floats:
        """Return the summands of each test, shape (providers, tests): free units, or *fit(s, p)*."""
        if self.is_total:
            shares = free_units[0].astype(np.float64)[:, None].repeat(len(self.requests), axis=1)
        else:
            shares = _divide(free_units[0], self.amounts[0])
            for units, amounts in zip(free_units[1:], self.amounts[1:], strict=True):
                np.minimum(shares, _divide(units, amounts), out=shares)
        np.maximum(shares, 0, out=shares)
        if self.serves is not None:
            shares *= self.serves[providers]
        return shares

    def find_providers(self, trees: Rows, rows: Rows) -> Rows:
        """Return the numbers of providers (tree and row); -1 for a provider that serves nothing."""
        keys = trees * self.width + rows
        numbers = np.minimum(search_ascending(self.keys, keys), max(len(self.keys) - 1, 0))
        if not len(self.keys):
            return np.full(len(keys), -1)
        return np.where(self.keys[numbers] == keys, numbers, -1)

    def list_providers(self, trees: Rows) -> tuple[Rows, Rows]:
        """Return the numbers of the providers in some trees, tree by tree, and the starts of the trees."""
        first = self.starts[trees]
        sizes = self.starts[trees + 1] - first
        return expand_ranges(first, sizes), np.append(0, sizes.cumsum())

    def compute_counts(self, shares: Floats, begin: Rows) -> Floats:
        """Return the greatest *x* that passes each test, shape (states, tests)."""
        sizes = begin[1:] - begin[:-1]
        sums = _sum_states(shares, begin, sizes)
        counts: Floats = sums // self.copies
        if self.is_total:
            # A saturated sum is no bound.
            counts = np.where(sums < GREATEST, sums // self.amounts[0], float(GREATEST))
        state = np.arange(len(sizes)).repeat(sizes)
        while self.are_apart:
            # Different groups need different providers, so each provider contributes at most x.
            fewer = _sum_states(np.minimum(shares, counts[state]), begin, sizes) // self.copies
            if (fewer == counts).all():
                break
            counts = fewer
        return counts


def _divide(free_units: Integers, amounts: Floats) -> Floats:
    """Return the quotient of each number and each amount, rounded down, at most `GREATEST`."""
    if free_units.max(initial=0) < _EXACT:
        quotients = free_units[:, None] / amounts
        np.floor(quotients, out=quotients)
        return quotients
    whole_quotients = free_units[:, None] // amounts.astype(np.int64)
    return np.minimum(whole_quotients, GREATEST).astype(np.float64)


def _sum_states(shares: Floats, begin: Rows, sizes: Rows) -> Floats:
    if sizes.all() and len(sizes):
        all_sums: Floats = np.add.reduceat(shares, begin[:-1], axis=0)
        return all_sums
    sums: Floats = np.zeros((len(sizes), shares.shape[1]))
    is_filled = sizes > 0
    if is_filled.any():
        sums[is_filled] = np.add.reduceat(shares, begin[:-1][is_filled], axis=0)
    return sums


class TreeCounter:
    """Counts consumers of some requests in many states of trees at once."""

    def __init__(
        self, forest: Forest, requests: Sequence[RequestCounts], *, are_joined: bool = False
    ) -> None:
        """Group the tests of the requests by class; with `are_joined`, all trees count as a single tree."""
        trees = 1 if are_joined else len(forest.order.roots)
        self.possible = np.ones((trees, len(requests)), dtype=np.bool_)
        groups: dict[tuple[object, ...], list[tuple[int, RequestPart]]] = {}
        for number, request in enumerate(requests):
            self.possible[:, number] = request.possible.any() if are_joined else request.possible
            key_counts: Counter[tuple[object, ...]] = Counter()
            for test in request.tests:
                key = tuple(sorted(test.amounts)), test.copies, test.are_apart, test.is_divided
                groups.setdefault((*key, key_counts[key]), []).append((number, test))
                key_counts[key] += 1
        self._groups = [_group_tests(forest, tests, trees) for tests in groups.values()]

    @property
    def nbytes(self) -> int:
        """Return the memory of the counter."""
        return self.possible.nbytes + sum(group.nbytes for group in self._groups)

    def count(self, forest: Forest, trees: Rows, takes: Sequence[TakenAmounts] = ()) -> Counts:
        """Return the counts in assumed states, each of a tree in which some amounts are taken."""
        counts = np.where(self.possible[trees], float(GREATEST), 0.0)
        for group in self._groups:
            providers, begin = group.list_providers(trees)
            free_units = group.get_free_units(forest, providers)
            for take in takes:
                if take.name in group.names:
                    number = group.find_providers(trees, take.rows)
                    states = np.flatnonzero(number >= 0)
                    at = begin[states] + number[states] - group.starts[trees[states]]
                    # Each state takes once, so the indices are distinct.
                    free_units[group.names.index(take.name)][at] -= take.select(states).amount
            passing = group.compute_counts(group.compute_shares(providers, free_units), begin)
            counts[:, group.requests] = np.minimum(counts[:, group.requests], passing)
        return counts

    def count_in_trees(self, forest: Forest) -> Integers:
        """Return the count of each request in each tree, int64, shape (trees, requests)."""
        return self.count(forest, np.arange(len(self.possible))).astype(np.int64)


def _group_tests(
    forest: Forest, numbered: Sequence[tuple[int, RequestPart]], trees: int
) -> _TestGroup:
    """Group numbered tests; if there is a single tree, it has the providers of all trees."""
    tests = [test for _, test in numbered]
    first = tests[0]
    names = tuple(sorted(first.amounts))
    width = max(forest.row_count, 1)
    keys_of = {
        id(test.serving): (test.serving.trees if trees > 1 else 0) * width + test.serving.providers
        for test in tests
    }
    keys = np.unique(np.concatenate(list(keys_of.values())))
    serves = np.zeros((len(keys), len(tests)), dtype=np.bool_)
    for at, test in enumerate(tests):
        serves[search_ascending(keys, keys_of[id(test.serving)]), at] = True
    rows = keys % width
    return _TestGroup(
        names=names,
        copies=first.copies,
        are_apart=first.are_apart,
        is_total=first.is_divided,
        requests=np.array([number for number, _ in numbered]),
        amounts=np.array([[float(test.amounts[name]) for test in tests] for name in names]),
        keys=keys,
        width=width,
        starts=search_ascending(keys, np.arange(trees + 1) * width),
        serves=None if serves.all() else serves,
        indices=tuple(forest.class_inventories(name).indices_of(rows)[1] for name in names),
    )
