# SPDX-License-Identifier: Apache-2.0
"""Whether slots that are compared by attributes can all be served (contract page 102, section 1).

Where all are to have the same value, the options of each are those whose value all of them can have, and
what is known of a partial candidate leaves one value, or few to try. Where each is to have another one,
slots compete for values, as they do for providers under `isolate`.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.domain import Domain
from treeclaim.forest.feasibility.packing import assignable
from treeclaim.forest.question.slots import SlotValues
from treeclaim.forest.table.columns import Integers, Mask, Positions

_MOST_TRIED = 64
"""Values, or combinations of values, that are tried one after the other; more are taken for possible."""

Wanted = Mapping[int, Mapping[str, int]]
"""Numbers of the values that slots have to have, by the names of the attributes."""


def narrowed(
    domains: Sequence[Domain],
    compared: Sequence[SlotValues],
    values: Mapping[str, Integers],
    budget: Budget,
) -> list[Domain]:
    """Return domains without the options whose value some other slot cannot have, which has to have it.

    Args:
        domains: The domains of all slots; equal slots share one, before and afterwards.
        compared: Which slots are compared.
        values: Numbers of values by position, by the names of the attributes.
        budget: What the search may cost.
    """
    domains_of_slots = list(domains)
    for listed in compared:
        if not listed.is_same:
            continue
        budget.check()
        distinct = {id(domains_of_slots[slot]): domains_of_slots[slot] for slot in listed.slots}
        keys = {number: _keys(domain, values[listed.name]) for number, domain in distinct.items()}
        common = reduce(np.intersect1d, keys.values())
        kept = {
            number: domain.kept(np.isin(keys[number], common))
            for number, domain in distinct.items()
        }
        for slot in listed.slots:
            domains_of_slots[slot] = kept[id(domains_of_slots[slot])]
    return domains_of_slots


def _keys(domain: Domain, values: Integers) -> Integers:
    """Return for each option a number that stands for its anchor and its value."""
    known, number = np.unique(values, return_inverse=True)
    anchors = np.arange(len(domain.starts) - 1).repeat(domain.counts)
    keys: Integers = anchors * len(known) + number[domain.positions]
    return keys


class ComparedSlots:
    """The slots of a search that are compared, under the anchors of a stage."""

    def __init__(
        self,
        compared: Sequence[SlotValues],
        values: Mapping[str, Integers],
        domains: Sequence[Domain],
        likenesses: Sequence[Integers],
        budget: Budget,
    ) -> None:
        """Take the slots and their options.

        Args:
            compared: Which slots are compared.
            values: Numbers of values by position, by the names of the attributes.
            domains: The domains of all slots.
            likenesses: Numbers by position that tell which values are equal under an anchor.
            budget: What the search may cost.
        """
        self._compared = compared
        self._values = values
        self._likenesses = likenesses
        self._domains = domains
        self._budget = budget

    @property
    def slots(self) -> list[int]:
        """Return the slots, each once."""
        return sorted({slot for listed in self._compared for slot in listed.slots})

    def of_options(self, positions: Positions) -> list[Integers]:
        """Return what is compared of some options, alike under anchors that are alike."""
        return [numbers[positions] for numbers in self._likenesses]

    def possible(self, anchor_count: int) -> Mask:
        """Tell under which anchors all have options, and there are enough values where they differ."""
        possible = np.ones(anchor_count, dtype=np.bool_)
        for listed in self._compared:
            self._budget.check()
            for slot in listed.slots:
                possible &= self._domains[slot].counts > 0
            if not listed.is_same:
                distinct = {id(self._domains[slot]): self._domains[slot] for slot in listed.slots}
                values = self._values[listed.name]
                keys = [_keys(domain, values) for domain in distinct.values()]
                anchors = np.unique(np.concatenate(keys)) // len(np.unique(values))
                possible &= np.bincount(anchors, minlength=anchor_count) >= len(listed.slots)
        return possible

    def tried(self, anchor: int, chosen: Positions, left: set[int]) -> list[Wanted]:
        """Return the values that slots which are not filled yet may have together, as far as is tried.

        Args:
            anchor: Index of the anchor.
            chosen: Position by slot.
            left: Slots that are not filled yet.
        """
        every: list[dict[int, dict[str, int]]] = [{}]
        for listed in self._compared:
            if not listed.is_same or not left.intersection(listed.slots):
                continue
            possible = self._possible_values(listed, anchor, chosen, left)
            if len(every) * len(possible) > _MOST_TRIED:
                continue
            every = [
                {
                    **wanted,
                    **{
                        slot: {**wanted.get(slot, {}), listed.name: value} for slot in listed.slots
                    },
                }
                for wanted in every
                for value in possible
                if all(
                    wanted.get(slot, {}).get(listed.name, value) == value for slot in listed.slots
                )
            ]
        return list(every)

    def _possible_values(
        self, listed: SlotValues, anchor: int, chosen: Positions, left: set[int]
    ) -> list[int]:
        values = self._values[listed.name]
        filled = [int(values[chosen[slot]]) for slot in listed.slots if slot not in left]
        if filled:
            return filled[:1]
        options = [np.unique(values[self._options(slot, anchor)]) for slot in listed.slots]
        common: list[int] = reduce(np.intersect1d, options).tolist()
        return common

    def _options(self, slot: int, anchor: int) -> Positions:
        domain = self._domains[slot]
        return domain.positions[domain.starts[anchor] : domain.starts[anchor + 1]]

    def suits(self, slot: int, positions: Positions, wanted: Wanted) -> Mask:
        """Tell which options of a slot have the values that it has to have."""
        suits = np.ones(len(positions), dtype=np.bool_)
        for name, value in wanted.get(slot, {}).items():
            suits &= self._values[name][positions] == value
        return suits

    def may_differ(self, anchor: int, chosen: Positions, left: set[int], wanted: Wanted) -> bool:
        """Judge whether slots that are to have different values can all have some."""
        for listed in self._compared:
            if listed.is_same:
                continue
            values = self._values[listed.name]
            taken = {int(values[chosen[slot]]) for slot in listed.slots if slot not in left}
            lists = []
            for slot in left.intersection(listed.slots):
                options = self._options(slot, anchor)
                some = values[options[self.suits(slot, options, wanted)]]
                lists.append(sorted(set(some.tolist()) - taken))
            room = {value: 1 for some in lists for value in some}
            if not assignable(lists, room, self._budget):
                return False
        return True
