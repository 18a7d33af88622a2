# SPDX-License-Identifier: Apache-2.0
"""A cache of candidates, for questions that must find what an earlier one found.

Which candidates exist depends on the shape of the Forest and on which providers have room for what, not on
the amounts themselves. A scheduler asks for the same flavor again and again, and a claim in between
rarely fills up a provider; other flavors often fit the same hosts. So what was found is kept with
everything that it depends on, until the shape of the Forest changes; what was found last for a kind of
question outlives changes of single trees. If slots share the amounts of a class, it depends on more,
and nothing is kept.

Without sharing providers, the candidates of a tree depend only on that tree, and on which of its providers have
room. So a change of a tree affects only questions that found candidates in it, or looked there in vain; and
if the same providers of the tree can serve as before, below the same parents, only their positions have
changed. If a claim fills up a provider, its candidates are left out, as no rule between
providers asks which others have room; some more are found behind the others, and some to spare for the next
claims.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.solve.combine import combined_from
from treeclaim.forest.solve.limit import first_candidates
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.recent_changes import Splice
from treeclaim.model.request import NO_GROUP, ByValue

_MOST_BYTES = 2_000_000
"""The longest list of candidates that is kept."""


class Kind(ByValue):
    """The inputs of candidates, without the shape of the Forest and the providers that have room.

    Attributes:
        nbytes: Memory that is counted for it.
    """

    __slots__ = ("_hash", "_value", "nbytes")

    def __init__(self, nbytes: int, *value: object) -> None:
        self.nbytes = nbytes
        self._set_value(*value)


@dataclass(frozen=True, slots=True)
class KnownCandidates:
    """The candidates of a problem, and all that they depend on besides the kind of question.

    Attributes:
        kind: That of the question.
        chosen: The candidates, int64, shape (candidates, slots); maybe more than are wanted.
        trees: How many trees, from the first on, were looked at; None for all.
        moment: The moment of the Forest.
        fits: For each relation of the problem, which of the pairs of these trees have room, as in
            `Relation`.
    """

    kind: Kind
    chosen: Choices
    trees: int | None
    moment: int
    fits: tuple[Mask | None, ...]

    @classmethod
    def of(
        cls, kind: Kind, problem: Problem, chosen: Choices, most: int | None
    ) -> "KnownCandidates":
        """Note what was found, of which only this many were drawn."""
        is_all = most is None or len(chosen) < most or not most
        trees = None if is_all else int(problem.order.tree[chosen[-1, 0]]) + 1
        return cls(kind, chosen, trees, problem.forest.moment, _fits(problem, trees))

    @property
    def nbytes(self) -> int:
        """Return the bytes that this takes; see `ByteCache`."""
        fits = sum(fits.nbytes for fits in self.fits if fits is not None)
        return self.chosen.nbytes + fits + self.kind.nbytes

    def followed(self, problem: Problem) -> "KnownCandidates | None":
        """Return the candidates now; None if they have to be found again.

        Args:
            problem: A problem of the same kind, of a Forest whose shape or free room may have changed.
        """
        forest = problem.forest
        splices = forest.splices_since(self.moment)
        if splices is None:
            return None
        # What is behind the trees that were looked at concerns none of them.
        near = [
            (moment, splice)
            for moment, splice in enumerate(splices, self.moment + 1)
            if self.trees is None or splice.tree < self.trees
        ]
        if near and not _serve_as_before(problem, [moment for moment, _ in near]):
            return None
        moved = self.chosen.copy() if near else self.chosen
        for _, splice in near:
            if splice.kept is None:
                return None
            _move(moved, splice, splice.kept)
        fits = _fits(problem, self.trees)
        left = _with_room(problem, moved, self.fits, fits)
        if left is None or (left is self.chosen and self.moment == forest.moment):
            return left if left is None else self
        if self.trees is not None and problem.wanted and len(left) < problem.wanted:
            return self._filled_up(problem, left, self.trees - 1)
        return KnownCandidates(self.kind, left, self.trees, forest.moment, fits)

    def _filled_up(self, problem: Problem, left: Choices, tree: int) -> "KnownCandidates":
        """Find candidates in a tree and those behind it, in addition to those left of the trees before it."""
        before = left[problem.order.tree[left[:, 0]] < tree]
        most = (problem.wanted or 0) + thresholds.SMALLEST_BLOCK
        blocks = (block.chosen for block in combined_from(problem, tree, most - len(before)))
        chosen = np.concatenate([before, *first_candidates(blocks, most - len(before))])
        return self.of(self.kind, problem, chosen, most)


def cached(problem: Problem, candidates: Callable[[], Iterator[Choices]]) -> Iterator[Choices]:
    """Yield the candidates of a problem, in blocks: those of an earlier one, or drawn now."""
    kind = _kind(problem)
    if kind is None:
        yield from candidates()
        return
    known = _known(problem, kind)
    if known is not None:
        if len(known.chosen):
            yield known.chosen[: problem.wanted]
        return
    blocks = [np.empty((0, len(problem.relations)), dtype=np.int64)]
    size = 0
    for block in candidates():
        size += block.nbytes
        if size <= _MOST_BYTES:
            blocks.append(block)
        yield block
    if size <= _MOST_BYTES:
        now_known = KnownCandidates.of(kind, problem, np.concatenate(blocks), problem.wanted)
        problem.forest.cache.keep(_key(problem, kind), now_known)
        if can_follow(problem):
            problem.forest.candidates.keep(kind, now_known, replaces=True)


def _known(problem: Problem, kind: Kind) -> KnownCandidates | None:
    last = problem.forest.candidates.find(kind)
    if isinstance(last, KnownCandidates):
        followed = last.followed(problem)
        if followed is not None:
            if followed is not last:
                problem.forest.candidates.keep(last.kind, followed, replaces=True)
            return followed
    known = problem.forest.cache.find(_key(problem, kind))
    return known if isinstance(known, KnownCandidates) else None


def _key(problem: Problem, kind: Kind) -> Hashable:
    """Return what the candidates depend on besides the shape of the Forest."""
    fits = (relation.fits for relation in problem.relations)
    return kind, tuple(None if mask is None else np.packbits(mask).tobytes() for mask in fits)


def _kind(problem: Problem) -> Kind | None:
    """Return the kind of question; None if its candidates are not to be kept."""
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
    return Kind(
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


def can_follow(problem: Problem) -> bool:
    """Tell whether no tree concerns another one, and candidates come tree by tree."""
    return not problem.options.breadth_first and all(
        relation.pairs.is_local and not len(relation.pairs.sharing)
        for relation in problem.relations
    )


def _serve_as_before(problem: Problem, moments: Sequence[int]) -> bool:
    """Tell whether changes of trees at some moments left the same providers to all slots.

    Traits that the providers of a group have together, attributes by which they are compared, and what
    an anchor must be, are not looked into.
    """
    rules = problem.rules
    if rules.required or rules.values or problem.allowed is not None:
        return False
    return not any(
        moment in relation.pairs.altered for relation in problem.relations for moment in moments
    )


def _move(chosen: Choices, splice: Splice, kept: Choices) -> None:
    """Write where the providers of a changed tree, and of those behind it, are now."""
    is_behind = (chosen >= splice.end) & (chosen < splice.end + len(splice.moved))
    is_here = (chosen >= splice.first) & (chosen < splice.end)
    behind, here = (
        splice.moved[chosen[is_behind] - splice.end],
        kept[chosen[is_here] - splice.first],
    )
    chosen[is_behind] = behind
    chosen[is_here] = here


def _fits(problem: Problem, trees: int | None) -> tuple[Mask | None, ...]:
    """Return which providers have room in the first trees, for each relation of a problem."""
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
    chosen: Choices,
    before: Sequence[Mask | None],
    now: Sequence[Mask | None],
) -> Choices | None:
    """Return the candidates whose providers all have room still; None if others have room now.

    Args:
        problem: What is asked.
        chosen: The candidates before.
        before: Which pairs had room, for each relation.
        now: Which have it now.
    """
    for slot, (had, has) in enumerate(zip(before, now, strict=True)):
        if has is None:
            if had is not None and not had.all():
                return None
            continue
        if had is not None and len(had) != len(has):
            return None
        changed = np.flatnonzero(~has if had is None else has != had)
        if has[changed].any():
            return None
        if len(changed):
            is_full = np.zeros(len(problem.order.row), dtype=np.bool_)
            is_full[problem.relations[slot].pairs.provider[changed]] = True
            chosen = chosen[~is_full.take(chosen[:, slot])]
    return chosen
