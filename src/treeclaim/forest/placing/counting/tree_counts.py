# SPDX-License-Identifier: Apache-2.0
"""How many consumers of a request fit into each tree, remembered while single trees change.

Where trees do not concern each other, a claim changes the numbers of the trees that it touches and
no others. So what was counted is kept, with a mark in the log of each class that the request wants;
next time only the trees written since are counted anew, in a small Forest of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from treeclaim.forest.domains.consumed import classes_with_consumed
from treeclaim.forest.order.alike import alone
from treeclaim.forest.table.columns import Integers, Trees
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.written import Mark, marks_of, written_since
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True, eq=False)
class TreeCounts:
    """Consumers of one request by tree; int64, shape (roots,).

    Attributes:
        fits: How many fit now.
        at_most: How many any order could place.
        when_empty: How many would fit if nothing were allocated.
        is_complete: Whether there was time to count all.
    """

    fits: Integers
    at_most: Integers
    when_empty: Integers
    is_complete: bool

    @property
    def nbytes(self) -> int:
        """Return the memory that they take."""
        return self.fits.nbytes + self.at_most.nbytes + self.when_empty.nbytes

    def with_others(self, trees: Trees, others: "TreeCounts") -> "TreeCounts":
        """Return the counts where some trees have numbers that were counted elsewhere."""
        return replace(
            self,
            fits=_replaced(self.fits, trees, others.fits),
            at_most=_replaced(self.at_most, trees, others.at_most),
            when_empty=_replaced(self.when_empty, trees, others.when_empty),
        )


def _replaced(counts: Integers, trees: Trees, others: Integers) -> Integers:
    changed = counts.copy()
    changed[trees] = others
    return changed


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Counts that were right at some moment.

    Attributes:
        counts: The counts.
        marks: That moment, for each class of the request.
    """

    counts: TreeCounts
    marks: Sequence[Mark]

    @property
    def nbytes(self) -> int:
        """The bytes of the counts."""
        return self.counts.nbytes


Count = Callable[[Forest], TreeCounts | None]
"""Counts in a Forest; None where trees concern each other."""


def remembered(forest: Forest, request: CandidateRequest, count: Count) -> TreeCounts | None:
    """Return the counts of a request as things are now; not to be changed.

    Args:
        forest: Where to count. If it has amounts of its own of some class, nothing is kept, and what
            is kept does not count.
        request: What the consumers want.
        count: Counts for this request.
    """
    marks = _marks(forest, request)
    if any(mark.columns.written is None for mark in marks):
        return count(forest)
    kept = forest.counts.find(request)
    counts = _followed(forest, kept, count) if isinstance(kept, _Kept) else None
    if counts is None:
        counts = count(forest)
    if counts is not None and counts.is_complete:
        forest.counts.take(request)
        forest.counts.keep(request, _Kept(counts, marks))
    return counts


def _followed(forest: Forest, kept: _Kept, count: Count) -> TreeCounts | None:
    """Return what has become of some counts; None if everything has to be counted again."""
    trees = written_since(forest, kept.marks)
    if trees is None or not len(trees):
        return None if trees is None else kept.counts
    some = count(alone(forest, trees))
    if some is None or not some.is_complete:
        return None
    return kept.counts.with_others(trees, some)


def _marks(forest: Forest, request: CandidateRequest) -> Sequence[Mark]:
    names = classes_with_consumed(forest, request.classes)
    return marks_of(map(forest.class_inventories, sorted(names)))
