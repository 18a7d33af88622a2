# SPDX-License-Identifier: Apache-2.0
"""Caches the candidates of searches, and reuses them while the same providers have room.

Candidates depend on the shape of the Forest and on the set of providers with room, not on exact amounts.
Schedulers repeat few flavors, and a claim rarely fills a provider. Candidates of slots that share the
amounts of a class depend on more, and are not cached.

A claim that fills a provider invalidates only that provider's candidates, because no rule between
providers depends on the room of others. If too few candidates remain, the search continues in the
last tree and finds spare candidates for the next claims.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.solve.combine import combine_from, first_candidates
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import SMALLEST_BLOCK
from treeclaim.forest.table.columns import Mask
from treeclaim.model.request import NO_GROUP, ValueObject

_MOST_BYTES = 2_000_000
"""Bytes of the longest cached list of candidates."""


class CandidateKind(ValueObject):
    """A cache key: the inputs of a search except the shape of the Forest and the providers with room."""

    __slots__ = ("_hash", "_value", "nbytes")

    def __init__(self, nbytes: int, *value: object) -> None:
        self.nbytes = nbytes
        self._set_value(*value)


@dataclass(frozen=True, slots=True)
class CachedCandidates:
    """The candidates of a problem, and the providers with room at that time.

    Attributes:
        chosen_rows: The candidates, int64, shape (candidates, slots); may exceed the wanted number.
        trees: Number of searched trees, from the first on; None for all.
        fits: For each relation, the mask of pairs with room in the searched trees, as in `Relation`.
    """

    kind: CandidateKind
    chosen_rows: Choices
    trees: int | None
    fits: tuple[Mask | None, ...]

    @classmethod
    def of(
        cls, kind: CandidateKind, problem: Problem, chosen_rows: Choices, most: int | None
    ) -> "CachedCandidates":
        """Return the candidates of a search for at most this many."""
        is_all = most is None or len(chosen_rows) < most or not most
        trees = None if is_all else int(problem.order.tree[chosen_rows[-1, 0]]) + 1
        return cls(kind, chosen_rows, trees, _fits(problem, trees))

    @property
    def nbytes(self) -> int:
        """Return the bytes for `ByteCache`."""
        fits = sum(fits.nbytes for fits in self.fits if fits is not None)
        return self.chosen_rows.nbytes + fits + self.kind.nbytes

    def updated_for(self, problem: Problem) -> "CachedCandidates | None":
        """Update the candidates for a later problem of the same kind; return None if a provider has gained room."""
        fits = _fits(problem, self.trees)
        fitting_choices = _with_room(problem, self.chosen_rows, self.fits, fits)
        if fitting_choices is None or fitting_choices is self.chosen_rows:
            return None if fitting_choices is None else self
        if (
            self.trees is not None
            and problem.wanted_count
            and len(fitting_choices) < problem.wanted_count
        ):
            return self._refilled(problem, fitting_choices, self.trees - 1)
        return CachedCandidates(self.kind, fitting_choices, self.trees, fits)

    def _refilled(
        self, problem: Problem, fitting_choices: Choices, tree: int
    ) -> "CachedCandidates":
        """Search a tree and later ones again, and keep the candidates of earlier trees."""
        before = fitting_choices[problem.order.tree[fitting_choices[:, 0]] < tree]
        most = (problem.wanted_count or 0) + SMALLEST_BLOCK
        blocks = (block.chosen_rows for block in combine_from(problem, tree, most - len(before)))
        chosen_rows = np.concatenate([before, *first_candidates(blocks, most - len(before))])
        return self.of(self.kind, problem, chosen_rows, most)


def draw_candidates(
    problem: Problem, candidates: Callable[[], Iterator[Choices]]
) -> Iterator[Choices]:
    """Yield blocks of candidates from the cache, or search with `candidates` and cache the result."""
    kind = _make_kind(problem)
    if kind is None:
        yield from candidates()
        return
    cached = _find_cached(problem, kind)
    if cached is not None:
        if len(cached.chosen_rows):
            yield cached.chosen_rows[: problem.wanted_count]
        return
    blocks = [np.empty((0, len(problem.relations)), dtype=np.int64)]
    size = 0
    for block in candidates():
        size += block.nbytes
        if size <= _MOST_BYTES:
            blocks.append(block)
        yield block
    if size <= _MOST_BYTES:
        cached = CachedCandidates.of(kind, problem, np.concatenate(blocks), problem.wanted_count)
        problem.forest.cache.keep(_make_key(problem, kind), cached)
        if _is_tree_by_tree(problem):
            problem.forest.cache.keep(kind, cached, replaces=True)


def _find_cached(problem: Problem, kind: CandidateKind) -> CachedCandidates | None:
    latest = problem.forest.cache.find(kind)
    if isinstance(latest, CachedCandidates):
        updated = latest.updated_for(problem)
        if updated is not None:
            if updated is not latest:
                problem.forest.cache.keep(latest.kind, updated, replaces=True)
            return updated
    cached = problem.forest.cache.find(_make_key(problem, kind))
    return cached if isinstance(cached, CachedCandidates) else None


def _make_key(problem: Problem, kind: CandidateKind) -> Hashable:
    fits = (relation.fits for relation in problem.relations)
    return kind, tuple(None if mask is None else np.packbits(mask).tobytes() for mask in fits)


def _make_kind(problem: Problem) -> CandidateKind | None:
    """Return the kind of a problem; None if its candidates must not be cached."""
    plan, options = problem.plan, problem.options
    request = plan.request
    is_shared = any(constraint.resource_class is not None for constraint in plan.joint_constraints)
    if is_shared or problem.rules.consuming or options.randomize or not request.nested:
        return None
    outcast = [
        group.conditions.forbidden_aggregates
        for group in request.groups
        if group.suffix == NO_GROUP
    ]
    return CandidateKind(
        plan.nbytes,
        problem.rules.steps,
        problem.rules.lists,
        plan.unsuffixed,
        plan.required,
        tuple([relation.pairs.serial for relation in problem.relations]),
        request.root,
        tuple(outcast),
        request.limit,
        options.maximum,
        options.breadth_first,
    )


def _is_tree_by_tree(problem: Problem) -> bool:
    """Return whether the search is depth-first and each candidate has providers of one tree only."""
    return not problem.options.breadth_first and all(
        relation.pairs.is_local and not len(relation.pairs.sharing)
        for relation in problem.relations
    )


def _fits(problem: Problem, trees: int | None) -> tuple[Mask | None, ...]:
    """Return for each relation the mask of pairs with room in the first trees; None for all trees."""
    return tuple(
        [
            relation.fits
            if trees is None or relation.fits is None
            else relation.fits[: relation.pairs.starts[trees]].copy()
            for relation in problem.relations
        ]
    )


def _with_room(
    problem: Problem,
    chosen_rows: Choices,
    before: Sequence[Mask | None],
    now: Sequence[Mask | None],
) -> Choices | None:
    """Return the candidates of providers that still have room; None if a provider has gained room.

    `before` and `now` are the masks of pairs with room, for each relation.
    """
    for slot, (had_room, has_room) in enumerate(zip(before, now, strict=True)):
        if has_room is None:
            if had_room is not None and not had_room.all():
                return None
            continue
        if had_room is not None and len(had_room) != len(has_room):
            return None
        changed = np.flatnonzero(~has_room if had_room is None else has_room != had_room)
        if has_room[changed].any():
            return None
        if len(changed):
            is_full = np.zeros(problem.forest.row_count, dtype=np.bool_)
            is_full[problem.relations[slot].pairs.provider[changed]] = True
            chosen_rows = chosen_rows[~is_full.take(chosen_rows[:, slot])]
    return chosen_rows
