# SPDX-License-Identifier: Apache-2.0
"""Scores: the weighted mean of the terms of a request's order (contract page 98, section 2)."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from treeclaim.forest.domains.filters import with_any_trait_by_position
from treeclaim.forest.order.relatives import relatives_of
from treeclaim.forest.order.terms import (
    CountedTrees,
    Inverse,
    Near,
    PackOfClass,
    PackProvidersOfClass,
    Partial,
    PreferredOfGroup,
    PreferredOfSlot,
    Shuffle,
    Sum,
    Taken,
    TermValue,
)
from treeclaim.forest.order.totals import ClassTotals, Floats, totals_of
from treeclaim.forest.solve.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.order import DECIMALS, Order, Preference, Term, TermName

_NOISE = 2e-15
"""Added to ceilings before they are rounded: sums of sixteen terms differ by less when they are
added in another order, and a ceiling must not be below a score."""

_HASH_BYTES = 8
"""Of a digest, for `shuffle`."""


_HASHES = 1 << (8 * _HASH_BYTES)
"""How many different digests there are."""


def rounded(scores: Floats) -> Floats:
    """Return scores as they are shown and compared."""
    found: Floats = np.round(scores, DECIMALS)
    return found


class Scoring:
    """Scores of the candidates of one search, which splits nothing."""

    def __init__(self, value: TermValue) -> None:
        """Take the weighted mean of all terms."""
        self._value = value

    def scores(self, chosen: Choices) -> Floats:
        """Return the score of each complete candidate."""
        return rounded(self._value.exact(chosen))

    def ceilings(self, anchors: Rows) -> Floats:
        """Return for some anchors, by number, a score that no candidate of theirs exceeds."""
        return rounded(self._value.ceiling[anchors] + _NOISE)

    def bounds(self, partial: Partial) -> Floats:
        """Return for partial candidates a score that nothing they may become exceeds."""
        return rounded(self._value.bound(partial) + _NOISE)


def scoring_of(
    problem: Problem, order: Order, totals: Callable[[str], ClassTotals] | None = None
) -> Scoring:
    """Return the scoring of a search that splits nothing.

    Args:
        problem: Of whose candidates.
        order: How they are ordered.
        totals: What is used of a class, where somebody keeps count of it.
    """
    maker = _Maker(problem, order, totals or partial(totals_of, problem.forest))
    return Scoring(maker.value())


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Numbers of all trees."""

    values: Floats

    @property
    def nbytes(self) -> int:
        return self.values.nbytes


class _Maker:
    """Makes the values of the terms of an order."""

    def __init__(
        self, problem: Problem, order: Order, totals: Callable[[str], ClassTotals]
    ) -> None:
        forest, plan, relations = problem.forest, problem.plan, problem.relations
        self._forest = forest
        self._plan = plan
        self._relations = relations
        self._read_totals = totals
        self._order = order
        self._taken: dict[str, list[Taken]] = {}
        for slot, want in enumerate(plan.slots):
            for name, amount in want.resources.items():
                self._taken.setdefault(name, []).append(Taken(slot, amount))
        giving = [slot for slot, want in enumerate(plan.slots) if want.resources]
        self._trees = CountedTrees(
            forest.order.tree,
            sharing_by_place(forest),
            giving,
            [relations[slot] for slot in giving],
        )
        self._totals: dict[str, ClassTotals] = {}

    def value(self) -> TermValue:
        total = sum(term.weight for term in self._order.terms)
        return Sum([(term.weight / total, self._term(term)) for term in self._order.terms])

    def _term(self, term: Term) -> TermValue:
        makers: Mapping[TermName, Callable[[Sequence[str]], TermValue]] = {
            TermName.PACK: self._pack,
            TermName.SPREAD: lambda classes: Inverse(self._pack(classes)),
            TermName.PACK_PROVIDERS: self._pack_providers,
            TermName.SPREAD_PROVIDERS: lambda classes: Inverse(self._pack_providers(classes)),
            TermName.NEAR: self._near,
            TermName.FAR: lambda suffixes: Inverse(self._near(suffixes)),
            TermName.PREFERRED: lambda _: self._preferred(),
            TermName.SHUFFLE: lambda seed: self._shuffle(seed[0]),
        }
        return makers[term.name](term.arguments)

    def _totals_of(self, name: str) -> ClassTotals:
        if name not in self._totals:
            self._totals[name] = self._read_totals(name)
        return self._totals[name]

    def _pack(self, classes: Sequence[str]) -> TermValue:
        named = list(dict.fromkeys(classes)) or list(self._taken)
        return Sum(
            [
                (
                    1 / len(named),
                    PackOfClass(
                        self._trees, self._totals_of(name), self._taken[name], self._relations
                    ),
                )
                for name in named
            ]
        )

    def _pack_providers(self, classes: Sequence[str]) -> TermValue:
        named = list(dict.fromkeys(classes)) or list(self._taken)
        slots = sum(len(self._taken[name]) for name in named)
        return Sum(
            [
                (
                    1 / slots,
                    PackProvidersOfClass(
                        self._totals_of(name), self._taken[name], self._relations
                    ),
                )
                for name in named
            ]
        )

    def _near(self, suffixes: Sequence[str]) -> TermValue:
        slots = [slot for slot, want in enumerate(self._plan.slots) if want.suffix in suffixes]
        return Near(
            relatives_of(self._forest),
            slots,
            self._relations,
            self._forest.order.roots,
            self._forest.cache,
        )

    def _preferred(self) -> TermValue:
        preferences = self._order.preferences
        total = sum(one.weight for one in preferences)
        parts: list[tuple[float, TermValue]] = []
        for suffix in dict.fromkeys(one.suffix for one in preferences):
            mine = [one for one in preferences if one.suffix == suffix]
            parts += [(1 / total, part) for part in self._preferred_of(suffix, mine)]
        return Sum(parts)

    def _preferred_of(self, suffix: str, mine: Sequence[Preference]) -> list[TermValue]:
        slots = [slot for slot, want in enumerate(self._plan.slots) if want.suffix == suffix]
        has = [with_any_trait_by_position(self._forest, (one.trait,)) for one in mine]
        if len(slots) > 1:
            return [
                PreferredOfGroup(
                    slots, self._relations, mask, is_wanted=one.is_wanted, weight=one.weight
                )
                for one, mask in zip(mine, has, strict=True)
            ]
        worth = np.zeros(len(self._forest.order.row))
        for one, mask in zip(mine, has, strict=True):
            worth += np.where(mask == one.is_wanted, float(one.weight), 0.0)
        return [PreferredOfSlot(slots[0], self._relations[slots[0]], worth)]

    def _shuffle(self, seed: str) -> TermValue:
        return Shuffle(self._trees, tree_numbers(self._forest, seed), tree_ranks(self._forest))


def sharing_by_place(forest: Forest) -> Mask:
    """Tell which places are sharing providers."""
    if SHARING_TRAIT not in forest.catalogue.traits:
        return np.zeros(len(forest.order.row), dtype=np.bool_)
    return with_any_trait_by_position(forest, (SHARING_TRAIT,))


def tree_numbers(forest: Forest, seed: str) -> Floats:
    """Return the number in [0, 1) of each tree that `shuffle` with a seed gives it."""

    def made() -> _Numbers:
        uuids = forest.uuid.values[forest.order.row[forest.order.roots]].tolist()
        begin = f"{seed}/".encode()
        return _Numbers(np.array([_fraction(begin + uuid) for uuid in uuids], dtype=np.float64))

    return forest.cache.get(("shuffle", seed), made).values


def _fraction(text: bytes) -> float:
    digest = hashlib.sha256(text).digest()[:_HASH_BYTES]
    return float(int.from_bytes(digest, "big") / _HASHES)


def tree_ranks(forest: Forest) -> Rows:
    """Return how many trees have a root with a smaller uuid than each."""

    def made() -> Ranks:
        uuids = forest.uuid.values[forest.order.row[forest.order.roots]]
        ranks = np.empty(len(uuids), dtype=np.int64)
        ranks[np.argsort(uuids)] = np.arange(len(uuids))
        return Ranks(ranks)

    return forest.cache.get("ranks of trees", made).values


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of all trees."""

    values: Rows

    @property
    def nbytes(self) -> int:
        """Return the memory that they take."""
        return self.values.nbytes
