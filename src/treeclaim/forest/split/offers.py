# SPDX-License-Identifier: Apache-2.0
"""Dividing an amount over several providers (contract page 97, section 2, `can_split`).

Plain arithmetic. An offer is what one provider can give: the multiples of a step in a range. A set
of offers is viable if parts of theirs sum to the amount, and minimal if no proper subset is.

Almost always all steps are equal. Then everything that a set can give is a range too, and a set is
judged by two sums. Where steps differ, offers of equal step still add up to one range, so the
question is whether a few numbers, one of each range, sum to the amount; `sums` answers it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.split.sums import reaches


@dataclass(frozen=True, slots=True)
class Offer:
    """What one provider can give.

    Attributes:
        position: The provider.
        least, most: Units, both multiples of the step, `0 < least <= most`.
        step: Units.
    """

    position: int
    least: int
    most: int
    step: int

    @classmethod
    def of(cls, position: int, bounds: tuple[int, int], step: int) -> "Offer | None":
        """Return the offer with the multiples of a step within some bounds, None if empty."""
        least, most = -(-max(bounds[0], 1) // step) * step, bounds[1] // step * step
        return cls(position, least, most, step) if least <= most else None


Offers = tuple[Offer, ...]


def is_viable(offers: Sequence[Offer], amount: int, budget: Budget = UNBOUNDED) -> bool:
    """Tell whether one part of each offer sum to an amount; no offers give nothing."""
    return ranges_reach(ranges_of(offers), amount, budget)


Ranges = tuple[tuple[int, int, int], ...]
"""What the offers of each step give together: step, least and most."""


def ranges_of(offers: Sequence[Offer]) -> Ranges:
    """Return what some offers give together, by step."""
    ranges: dict[int, tuple[int, int]] = {}
    for offer in offers:
        least, most = ranges.get(offer.step, (0, 0))
        ranges[offer.step] = least + offer.least, most + offer.most
    return tuple(sorted((step, *bounds) for step, bounds in ranges.items()))


def ranges_reach(ranges: Ranges, amount: int, budget: Budget) -> bool:
    """Tell whether one number of each of some ranges sum to an amount."""
    terms = [(step, (most - least) // step) for step, least, most in ranges]
    return reaches(terms, amount - sum(least for _, least, _ in ranges), budget.check)
