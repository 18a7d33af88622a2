# SPDX-License-Identifier: Apache-2.0
"""The options of the slots of a request under some anchors."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains.consumed import OptionUses, find_uses
from treeclaim.forest.domains.relation import Relation, counts_before
from treeclaim.forest.question.slots import JointConstraint
from treeclaim.forest.table.columns import (
    Integers,
    Mask,
    Rows,
    expand_ranges,
    find_ascending,
    require_ascending,
    search_ascending,
)
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.order import TreeOrder


@dataclass(frozen=True)
class Domain:
    """The options of a slot: the providers that may take it, for some anchors.

    Attributes:
        starts: The first option of each anchor, and the end, int64, shape (anchors + 1,).
        rows: Rows of providers, in canonical order within an anchor, int64, shape (options,).
        order: The canonical order of trees.
        is_local: Whether each provider is in its anchor's tree.
        room: Most units that one candidate may take, int64, shape (options,), by the name of each class
            that several slots request.
        uses: Uses of inventories that other slots may use too; None if they are not compared.
    """

    starts: Integers
    rows: Integers
    order: TreeOrder
    is_local: bool
    room: Mapping[str, Integers]
    uses: OptionUses | None = None

    @property
    def nbytes(self) -> int:
        """Return the memory of the domain, including its cached keys."""
        uses = 0 if self.uses is None else 3 * self.uses.codes.nbytes
        return self.starts.nbytes + (2 + len(self.room)) * self.rows.nbytes + uses

    @property
    def counts(self) -> Integers:
        """Return the number of options of each anchor, int64, shape (anchors,)."""
        counts: Integers = self.starts[1:] - self.starts[:-1]
        return counts

    @cached_property
    def keys(self) -> Integers:
        """Return `anchor * order.span` and the rank of the provider, ascending, int64, shape (options,)."""
        anchors: Integers = np.arange(len(self.starts) - 1).repeat(self.counts)
        return require_ascending(anchors * self.order.span + self.order.rank(self.rows))

    def options_below(
        self, anchors: Integers, heads: Rows, *, are_own: bool
    ) -> tuple[Integers, Integers]:
        """Return the range of each anchor's options in the subtree of a provider.

        Args:
            anchors: Indices of anchors, int64, shape (n,).
            heads: Rows of providers, int64, shape (n,).
            are_own: Whether all options and heads are known to be in the trees of their anchors.

        Returns:
            The first option, and one past the last, both int64, shape (n,).
        """
        sizes = self.order.end[heads] - heads
        if are_own and self._places <= 2 * (len(heads) + len(self.rows)):
            at = self._place_of(anchors, heads)
            return self._passed.take(at), self._passed.take(at + sizes)
        keys = anchors * self.order.span + self.order.rank(heads)
        first: Integers = search_ascending(self.keys, keys)
        end: Integers = search_ascending(self.keys, keys + sizes)
        return first, end

    @property
    def _places(self) -> int:
        """Return the number of places: each anchor has as many as the largest tree has providers."""
        return (len(self.starts) - 1) * self.order.width

    def _place_of(self, anchors: Integers, rows: Rows) -> Integers:
        places: Integers = anchors * self.order.width + (rows - self.order.root[rows])
        return places

    @cached_property
    def _passed(self) -> Integers:
        """Return the number of options before each place, and the total; all options must be local."""
        passed_places = np.zeros(self._places + 1, dtype=np.int64)
        anchors = np.arange(len(self.starts) - 1).repeat(self.counts)
        passed_places[self._place_of(anchors, self.rows) + 1] = 1
        passed_places.cumsum(out=passed_places)
        return passed_places

    @cached_property
    def _by_row(self) -> Integers | None:
        """Return the option by row, -1 for none; None if a provider is an option of two anchors.

        Only sharing providers have several anchors.
        """
        numbers = np.arange(len(self.rows))
        number_at = np.full(len(self.order.tree), -1, dtype=np.int64)
        number_at[self.rows] = numbers
        return number_at if (number_at[self.rows] == numbers).all() else None

    def find_options(self, anchors: Integers, rows: Integers) -> Integers:
        """Return the options of providers, shape (n, k), given n anchors; -1 for providers that are none."""
        # A table of all rows pays off only with as many look-ups.
        if rows.size > len(self.order.tree) and self._by_row is not None:
            return self._by_row.take(rows)
        keys = anchors[:, None] * self.order.span + self.order.rank(rows)
        is_option, options = find_ascending(self.keys, keys)
        options[~is_option] = -1
        return options

    def restrict(self, options: Mask) -> "Domain":
        """Return the domain with only some options; itself if these are all."""
        if options.all():
            return self
        return Domain(
            starts=counts_before(options)[self.starts],
            rows=self.rows[options],
            order=self.order,
            is_local=self.is_local,
            room={name: room[options] for name, room in self.room.items()},
            uses=None if self.uses is None else self.uses.of_options(options),
        )

    def sums(self, numbers: Integers) -> npt.NDArray[np.float64]:
        """Return the sum over each anchor's options, given a number for each option."""
        return sum_ranges(numbers, self.starts[:-1], self.starts[1:])


def sum_ranges(numbers: Integers, first: Integers, end: Integers) -> npt.NDArray[np.float64]:
    """Return the sum of the numbers in each range."""
    before = np.zeros(len(numbers) + 1)
    numbers.cumsum(out=before[1:], dtype=np.float64)
    sums: npt.NDArray[np.float64] = before[end] - before[first]
    return sums


def slots_served(constraint: JointConstraint, domain: Domain) -> Integers:
    """Return how many of the constraint's slots each option could serve, int64, shape (options,)."""
    if constraint.resource_class is None:
        return np.ones(len(domain.rows), dtype=np.int64)
    return domain.room[constraint.resource_class] // constraint.least


def build_domain(
    forest: Forest,
    relation: Relation,
    anchors: Integers,
    joint_classes: Collection[str],
    uses: Mapping[str, int] | None = None,
) -> Domain:
    """Return the domain of a slot under some anchors (ascending numbers of roots).

    `joint_classes` names the classes that this and other slots request. `uses` has the amounts of the
    slot by class name if its uses are compared; else it is None.
    """
    pairs, fits = relation.pairs, relation.fits
    selected_pairs, starts = _select_pairs(pairs.starts, anchors)
    if fits is not None:
        fits = fits[selected_pairs]
        starts = counts_before(fits)[starts]
    room = {}
    for name in joint_classes:
        indices = pairs.indices[name]
        numbers = np.arange(indices.start, indices.stop) if isinstance(indices, slice) else indices
        room[name] = forest.class_inventories(name).room(
            _select_fitting(numbers[selected_pairs], fits)
        )
    option_uses = None
    if uses is not None:
        numbers = _select_fitting(np.arange(len(pairs.provider))[selected_pairs], fits)
        option_uses = find_uses(forest, pairs, uses, numbers)
    return Domain(
        starts=starts,
        rows=_select_fitting(pairs.provider[selected_pairs], fits),
        order=forest.order,
        is_local=pairs.is_local,
        room=room,
        uses=option_uses,
    )


def _select_pairs(starts: Integers, anchors: Integers) -> tuple[Integers | slice, Integers]:
    """Return the pairs of some roots, and where each root's pairs begin among them, with the end."""
    if not len(anchors):
        return slice(0), np.zeros(1, dtype=np.int64)
    first, last = anchors[0], anchors[-1]
    if last - first + 1 == len(anchors):
        part = starts[first : last + 2]
        return slice(part[0], part[-1]), part - part[0]
    counts = starts[anchors + 1] - starts[anchors]
    return expand_ranges(starts[anchors], counts), np.append(0, counts.cumsum())


def _select_fitting(numbers: Integers, fits: Mask | None) -> Integers:
    fitting_numbers: Integers = numbers if fits is None else numbers[fits]
    return fitting_numbers
