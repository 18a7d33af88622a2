# SPDX-License-Identifier: Apache-2.0
"""The options of the slots of a request under some anchors."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains.relation import Relation, passed
from treeclaim.forest.domains.windows import Window
from treeclaim.forest.question.contests import Contest
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.forest.table.forest import Forest

Amounts = npt.NDArray[np.int64]
"""Units of one resource class, int64."""


@dataclass(frozen=True)
class Options:
    """The providers that may take a slot, for some anchors.

    Attributes:
        starts: Where each anchor's options begin, int64, shape (anchors + 1,).
        places: Providers, ascending within an anchor, int64, shape (options,).
        place_count: Number of places there are in all.
        is_local: Whether each provider is in its anchor's tree.
        room: By name of the class, for those that several slots ask for: most units that one
            candidate may take, int64, shape (options,).
    """

    starts: Rows
    places: Rows
    place_count: int
    is_local: bool
    room: Mapping[str, Amounts]

    @property
    def nbytes(self) -> int:
        """Return the memory that these take, with the keys that are made of them."""
        return self.starts.nbytes + (2 + len(self.room)) * self.places.nbytes

    @property
    def counts(self) -> Rows:
        """Return the number of options of each anchor, int64, shape (anchors,)."""
        counts: Rows = self.starts[1:] - self.starts[:-1]
        return counts

    @cached_property
    def keys(self) -> Rows:
        """Return `anchor * place_count + provider`, ascending, int64, shape (options,)."""
        anchors: Rows = np.arange(len(self.starts) - 1).repeat(self.counts)
        return anchors * self.place_count + self.places

    def position(self, anchors: Rows, places: Rows) -> Rows:
        """Return the number of the first option of each anchor that is not before a place.

        Args:
            anchors: Indices of anchors, int64, shape (n,).
            places: Of the same trees, or one behind them, int64, shape (n,).
        """
        if not self.is_local:
            found: Rows = self.keys.searchsorted(anchors * self.place_count + places)
            return found
        # Trees do not overlap, so the anchor need not be looked at.
        if len(places) + len(self.places) < self._span:
            found = self.places.searchsorted(places)
        else:
            at = np.minimum(np.maximum(places - self.places[0], 0), self._span)
            found = self._passed.take(at)
        return found

    @cached_property
    def _span(self) -> int:
        return int(self.places[-1] - self.places[0]) + 1 if len(self.places) else 1

    @cached_property
    def _passed(self) -> Rows:
        """Return how many options are before each place from the first one's to the last one's.

        It is one longer than that. Only for local options.
        """
        passed = np.zeros(self._span + 1, dtype=np.int64)
        passed[self.places - self.places[0] + 1] = 1
        passed.cumsum(out=passed)
        return passed

    @cached_property
    def _by_place(self) -> Rows | None:
        """Return the option by place, -1 for none; None if a place is an option of two anchors.

        Only sharing providers are.
        """
        numbers = np.arange(len(self.places))
        found = np.full(self.place_count, -1, dtype=np.int64)
        found[self.places] = numbers
        return found if (found[self.places] == numbers).all() else None

    def option_of(self, anchors: Rows, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers of options, -1 where a place is none.

        Args:
            anchors: Index of the anchor of each row, int64, shape (n,).
            places: int64, shape (n, k).
        """
        # A table of all places is worth its making only if there is as much to look up.
        if places.size > self.place_count and self._by_place is not None:
            return self._by_place.take(places)
        keys = anchors[:, None] * self.place_count + places
        option = np.searchsorted(self.keys, keys)
        option[self.keys[np.minimum(option, len(self.keys) - 1)] != keys] = -1
        return option

    def sums(self, numbers: Amounts) -> Amounts:
        """Return, for each anchor, the sum of one number per option."""
        total = np.zeros(len(numbers) + 1, dtype=np.int64)
        np.cumsum(numbers, out=total[1:])
        return np.diff(total[self.starts])


def places_for(contest: Contest, options: Options) -> Amounts:
    """Return how many of the slots each option could serve, int64, shape (options,)."""
    if contest.resource_class is None:
        return np.ones(len(options.places), dtype=np.int64)
    return options.room[contest.resource_class] // contest.least


def options_of(
    forest: Forest, relation: Relation, anchors: Rows, contested: Collection[str]
) -> Options:
    """Restrict a relation to some anchors.

    Args:
        forest: Where to look up the room there is.
        relation: Pairs of anchor and provider.
        anchors: Numbers of roots, ascending.
        contested: Names of the classes that several slots ask for, this one among them.
    """
    pairs, fits = relation.pairs, relation.fits
    chosen, starts = _pairs_of(pairs.starts, anchors)
    if fits is not None:
        fits = fits[chosen]
        starts = passed(fits)[starts]
    room = {}
    for name in contested:
        slots = pairs.slots[name]
        numbers = np.arange(slots.start, slots.stop) if isinstance(slots, slice) else slots
        room[name] = forest.class_inventories(name).room(_kept(numbers[chosen], fits))
    return Options(
        starts=starts,
        places=_kept(pairs.provider[chosen], fits),
        place_count=len(forest.order.row),
        is_local=pairs.is_local,
        room=room,
    )


def _pairs_of(starts: Rows, anchors: Rows) -> tuple[Rows | slice, Rows]:
    """Return the numbers of the pairs of some roots, and where those of each root begin there."""
    if not len(anchors):
        return slice(0), np.zeros(1, dtype=np.int64)
    first, last = anchors[0], anchors[-1]
    if last - first + 1 == len(anchors):
        part = starts[first : last + 2]
        return slice(part[0], part[-1]), part - part[0]
    begin = starts[anchors]
    window = Window(begin, starts[anchors + 1] - begin)
    ends = np.zeros(len(anchors) + 1, dtype=np.int64)
    window.counts.cumsum(out=ends[1:])
    return window.pairs()[1], ends


def _kept(numbers: Rows, fits: Mask | None) -> Rows:
    kept: Rows = numbers if fits is None else numbers[fits]
    return kept
