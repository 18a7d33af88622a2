# SPDX-License-Identifier: Apache-2.0
"""Divides an amount over a viable set of offers (contract page 97, section 2.2), and candidates with such divisions.

An offer is the amounts that one provider can give: the multiples of a step in a range. All offers of a division have
the same step, so a set of offers can give each multiple of the step between two sums.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Offer:
    """The offer of a provider.

    Attributes:
        position: The row of the provider.
        least, most: Units, both multiples of the step, `0 < least <= most`.
    """

    position: int
    least: int
    most: int

    @classmethod
    def of(cls, position: int, bounds: tuple[int, int], step: int) -> "Offer | None":
        """Return the offer of the multiples of a step within some bounds, None if there are none."""
        least, most = -(-max(bounds[0], 1) // step) * step, bounds[1] // step * step
        return cls(position, least, most) if least <= most else None


Offers = tuple[Offer, ...]


def is_viable(offers: Sequence[Offer], amount: int) -> bool:
    """Return whether a multiple of the step is the sum of one part of each offer."""
    return sum(offer.least for offer in offers) <= amount <= sum(offer.most for offer in offers)


def pack(offers: Sequence[Offer], amount: int, step: int) -> tuple[int, ...]:
    """Divide an amount over a viable set so that the vector of parts is the greatest."""
    del step
    parts = []
    least_remaining = sum(offer.least for offer in offers)
    for offer in offers:
        least_remaining -= offer.least
        parts.append(min(offer.most, amount - least_remaining))
        amount -= parts[-1]
    return tuple(parts)


def even(offers: Sequence[Offer], amount: int, step: int) -> tuple[int, ...]:
    """Divide an amount over a viable set: the smallest part that can grow grows, step by step.

    Each part begins with the least of its offer. As long as all steps are taken, the parts that can grow
    reach a common level; what is left is one step for the first ones of that level.
    """

    def parts_at(level: int) -> list[int]:
        return [min(offer.most, max(offer.least, level)) for offer in offers]

    low, high = 0, max(offer.most for offer in offers) // step
    while low < high:
        middle = (low + high + 1) // 2
        if sum(parts_at(middle * step)) <= amount:
            low = middle
        else:
            high = middle - 1
    parts = parts_at(low * step)
    remaining_steps = (amount - sum(parts)) // step
    for number, offer in enumerate(offers):
        if remaining_steps and parts[number] == low * step < offer.most:
            parts[number] += step
            remaining_steps -= 1
    return tuple(parts)


_CANDIDATE_BYTES = 400
_PART_BYTES = 200
"""Memory that is counted for a candidate, and for each part of its divisions."""


@dataclass(frozen=True, slots=True)
class SplitCandidate:
    """A candidate with divisions.

    Attributes:
        chosen: Rows of providers by slot.
        parts: Class, row and units of each part of a division.
    """

    chosen: tuple[int, ...]
    parts: tuple[tuple[str, int, int], ...]

    @property
    def rows(self) -> list[int]:
        """Return the rows of all its providers."""
        return [*self.chosen, *(row for _, row, _ in self.parts)]

    @property
    def key(self) -> Hashable:
        """Return what it is compared by: each anchor has an order of the parts of its own."""
        return self.chosen, frozenset(self.parts)

    @property
    def nbytes(self) -> int:
        """Return the memory that is counted for it."""
        return _CANDIDATE_BYTES + _PART_BYTES * len(self.parts)
