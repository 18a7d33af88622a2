# SPDX-License-Identifier: Apache-2.0
"""Whether groups that compete for the same providers can all be served.

The slots of a request compete in two ways: under `isolate` each suffixed group needs a provider
of its own; and slots that ask for the same class share what there is of it. Both are questions of
assignment: can every slot be given one of its options so that no provider is given more often than
it has room for? (Hall's marriage theorem, with multiplicities.)

Counting answers for all trees at once with a few array operations: the options of each set of
competitors together must have enough room. What counting lets through is judged exactly, by
augmenting paths, but only for a tree whose combinations are too many to be tried quickly.

There a provider's room is counted in units of the smallest amount asked; where the amounts differ,
packing judges it besides (see `packing`). All are necessary conditions, never too strict. What they
let through still passes all rules.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.slots import Options, places_for
from treeclaim.forest.feasibility.assignment import assignable
from treeclaim.forest.feasibility.packing import Packing
from treeclaim.forest.question.contests import Contest
from treeclaim.forest.question.wants import Want
from treeclaim.forest.table.columns import Mask, Rows


class Competition:
    """Answers whether anchors, or partial candidates, can still serve all competing slots."""

    def __init__(
        self,
        wants: Sequence[Want],
        options: Sequence[Options],
        contests: Sequence[Contest],
        lists: Sequence[Sequence[int]],
        place_count: int,
        *,
        budget: Budget,
    ) -> None:
        """Take what a search has.

        Args:
            wants: What each slot asks for.
            options: The options of each slot.
            contests: Which slots compete.
            lists: Slots of each same_subtree list. The head of a list leaves them few options, so
                they do not count where combinations do.
            place_count: Number of places there are in all.
            budget: When to give up.
        """
        self._budget = budget
        self._wants = wants
        self._loose = sorted(set(range(len(wants))).difference(*lists))
        contested = {id(options[slot]): options[slot] for one in contests for slot in one.slots}
        self._contested = list(contested.values())
        self._packing = Packing(wants, options, contests, budget)
        self._options = options
        self._contests = contests
        self._place_count = place_count

    def promising(self, anchor_count: int) -> Rows:
        """Return the anchors (indices) that counting does not rule out, ascending."""
        if not self._contests:
            return np.arange(anchor_count)
        mask = np.ones(anchor_count, dtype=np.bool_)
        for contest in self._contests:
            self._budget.check()
            mask &= self._enough(contest, anchor_count)
        return np.flatnonzero(mask)

    def _enough(self, contest: Contest, anchor_count: int) -> Mask:
        distinct: dict[int, list[int]] = {}
        for one in contest.slots:
            distinct.setdefault(id(self._options[one]), []).append(one)
        mask = np.ones(anchor_count, dtype=np.bool_)
        for members in distinct.values():
            options = self._options[members[0]]
            mask &= options.sums(places_for(contest, options)) >= len(members)
        options_of_all = [self._options[members[0]] for members in distinct.values()]
        keys, first = np.unique(
            np.concatenate([one.keys for one in options_of_all]), return_index=True
        )
        anchors = keys // self._place_count
        served = np.concatenate([places_for(contest, one) for one in options_of_all])[first]
        mask &= np.bincount(anchors, served, minlength=anchor_count) >= len(contest.slots)
        if contest.resource_class is not None:
            rooms = [one.room[contest.resource_class] for one in options_of_all]
            room = np.concatenate(rooms)[first].astype(np.float64)
            mask &= np.bincount(anchors, room, minlength=anchor_count) >= contest.total
        return mask

    def runs(self, anchors: Rows) -> Iterator[Rows]:
        """Split anchors into runs: each with many combinations alone, the others together.

        Those that cannot match, as far as is judged before the search, are left out.
        """
        if not self._contests:
            yield anchors
            return
        combinations = np.zeros(len(anchors))
        for slot in self._loose:
            combinations += np.log(self._options[slot].counts[anchors])
        hopeful = np.ones(len(anchors), dtype=np.bool_)
        many = np.flatnonzero(combinations > np.log(thresholds.SOME_COMBINATIONS))
        judged: dict[bytes, bool] = {}
        for at, likeness in self._likenesses(anchors, many):
            if likeness not in judged:
                self._budget.check()
                judged[likeness] = self.may_match(int(anchors[at]))
            hopeful[at] = judged[likeness]
        alone = (combinations > np.log(thresholds.MANY_COMBINATIONS))[hopeful]
        cuts = np.flatnonzero(alone[1:] | alone[:-1]) + 1
        yield from (run for run in np.split(anchors[hopeful], cuts) if len(run))

    def _likenesses(self, anchors: Rows, which: Rows) -> Iterator[tuple[int, bytes]]:
        """Yield what the judgement of each of some anchors depends on: alike trees have the same.

        Anchors with equally many options are written down together, as rows of a matrix.

        Args:
            anchors: Indices of anchors.
            which: Which of them are meant: positions, int64.
        """
        counts = np.array([one.counts[anchors[which]] for one in self._contested])
        sizes, group = np.unique(counts, axis=1, return_inverse=True)
        for number, widths in enumerate(sizes.T.tolist()):
            self._budget.check()
            some = which[group == number]
            first = self._contested[0].starts[anchors[some]]
            base = self._contested[0].places[first]
            columns = []
            for options, width in zip(self._contested, widths, strict=True):
                part = options.starts[anchors[some]][:, None] + np.arange(width)
                columns.append(options.places[part] - base[:, None])
                columns += [room[part] for room in options.room.values()]
            rows = np.concatenate(columns, axis=1)
            prefix = number.to_bytes(4, "little")
            for at, row in zip(some.tolist(), rows, strict=True):
                yield at, prefix + row.tobytes()

    def may_match(self, anchor: int) -> bool:
        """Judge exactly whether the competing slots can all be served under one anchor."""
        nothing = np.full(len(self._wants), -1, dtype=np.int64)
        return self.may_complete(anchor, nothing, range(len(self._wants)))

    def may_complete(self, anchor: int, chosen: Rows, left: Sequence[int]) -> bool:
        """Judge whether the slots that are left can all be served after some choices.

        Args:
            anchor: Index of the anchor.
            chosen: Place by slot, int64, shape (slots,); those of `left` have no meaning.
            left: Slots that are not filled yet.
        """
        open_slots = set(left)
        return all(
            assignable(*self._assignment(contest, anchor, chosen, open_slots), self._budget)
            for contest in self._contests
        ) and self._packing.may_complete(anchor, chosen, left)

    def _assignment(
        self, contest: Contest, anchor: int, chosen: Rows, left: set[int]
    ) -> tuple[list[list[int]], Mapping[int, int]]:
        """Return the options of each open slot, and how many slots each place can serve."""
        room: dict[int, int] = {}
        lists: dict[int, list[int]] = {}
        wanted = []
        for one in contest.slots:
            options = self._options[one]
            if id(options) not in lists:
                part = slice(options.starts[anchor], options.starts[anchor + 1])
                lists[id(options)] = options.places[part].tolist()
                units = (
                    places_for(contest, options)
                    if contest.resource_class is None
                    else options.room[contest.resource_class]
                )
                room.update(zip(lists[id(options)], units[part].tolist(), strict=True))
            if one in left:
                wanted.append(lists[id(options)])
        for one in contest.slots:
            if one not in left:
                place = int(chosen[one])
                room[place] = room.get(place, 0) - self._taken(contest, one)
        return wanted, {place: units // contest.least for place, units in room.items()}

    def _taken(self, contest: Contest, slot: int) -> int:
        if contest.resource_class is None:
            return 1
        return self._wants[slot].resources[contest.resource_class]
