# SPDX-License-Identifier: Apache-2.0
"""Divides an amount over a viable set of offers, and tells which offers there are (contract page 97, section 2, `can_split`)."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.domains.consumed import most_by_consumed
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.minimal_sets import minimal_sets
from treeclaim.forest.split.offers import Offer, Offers, is_viable, ranges_of, ranges_reach
from treeclaim.forest.table.columns import search_ascending
from treeclaim.model.request import SplitPolicy

_DIVISION_BYTES = 4_000_000
"""Bytes of divisions that are kept: a few thousand divisions over some providers each."""


Worth = Callable[[str, Offer], int]
"""Returns what an offer of a class is worth."""

Division = tuple[tuple[int, int], ...]
"""Place and units of each part."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """A division that is kept."""

    parts: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        return 100 + 40 * len(self.parts)


_divisions = ByteCache(_DIVISION_BYTES, makes_read_only=False)
"""Divisions by policy, offers and amount."""


def pack(offers: Sequence[Offer], amount: int, budget: Budget = UNBOUNDED) -> tuple[int, ...]:
    """Divide an amount over a viable set so that the vector of parts is the greatest possible."""
    some = _without_positions(offers)
    division = _divisions.get(("pack", some, amount), lambda: _Parts(_pack(some, amount, budget)))
    return division.parts


def even(offers: Sequence[Offer], amount: int, budget: Budget = UNBOUNDED) -> tuple[int, ...]:
    """Divide an amount over a viable set so that the parts differ least; then as `pack` does."""
    some = _without_positions(offers)
    division = _divisions.get(("even", some, amount), lambda: _Parts(_even(some, amount, budget)))
    return division.parts


def _without_positions(offers: Sequence[Offer]) -> Offers:
    """Forget where the offers are: equal hardware is divided equally, and only once."""
    return tuple(replace(offer, position=0) for offer in offers)


def _pack(offers: Offers, amount: int, budget: Budget) -> tuple[int, ...]:
    parts = []
    for number, offer in enumerate(offers):
        rest = offers[number + 1 :]
        ranges = ranges_of(rest)
        part = next(
            part
            for part in _parts_of(offer, rest, amount)
            if ranges_reach(ranges, amount - part, budget)
        )
        parts.append(part)
        amount -= part
    return tuple(parts)


def _parts_of(offer: Offer, rest: Offers, amount: int) -> range:
    """Return the parts of an offer that may leave what the rest can give, the greatest first.

    What is left must be a multiple of the divisor of the other steps.
    """
    most = min(offer.most, amount - sum(other.least for other in rest))
    least = max(offer.least, amount - sum(other.most for other in rest))
    # Nothing but 0 is a multiple of "no step".
    divisor = gcd(*(other.step for other in rest)) or max(amount, 1)
    common = gcd(offer.step, divisor)
    stride = lcm(offer.step, divisor)
    times = amount // common * pow(offer.step // common, -1, divisor // common)
    part = offer.step * (times % (divisor // common))
    greatest = most - (most - part) % stride
    return range(greatest, least - 1, -stride)


def _even(offers: Offers, amount: int, budget: Budget) -> tuple[int, ...]:
    """Find the narrowest window in which there is a division.

    No division's greatest part is below `top`, and none's smallest is above `bottom`, as the parts
    of a window that ends or begins there show. From `bottom` downwards each number that the
    smallest part can be is tried as the lower end of a window: first whether a window as narrow as
    the narrowest so far is enough, and if so, how narrow it can be. A window that reaches lower
    never has to reach higher.
    """
    ceiling = max(offer.most for offer in offers)
    top = _first(ceiling, lambda share: _most_below(offers, share) >= amount)
    bottom = _first(ceiling, lambda share: _least_above(offers, share) > amount) - 1
    top = max(top, *(offer.least for offer in offers))
    bottom = min(bottom, *(offer.most for offer in offers))
    width = ceiling
    lowest: list[int] = []
    low = bottom
    while low > 0 and top - low <= width:
        budget.check()
        low = max(_at_most(offer, low) for offer in offers)
        if low <= 0 or top - low > width:
            break
        if _has_division(offers, low, low + width, amount, budget):
            widths = range(max(top - low, 0), width + 1)
            narrowest = _narrowest(offers, low, widths, amount, budget)
            if narrowest < width:
                width, lowest = narrowest, []
            lowest.append(low)
        low -= 1
    windows = [_within(offers, low, low + width) for low in lowest]
    return max(_pack(window, amount, budget) for window in windows if window)


def _at_most(offer: Offer, low: int) -> int:
    """Return the greatest part of an offer that is not above a level, 0 for none."""
    part = min(offer.most, low // offer.step * offer.step)
    return part if part >= offer.least else 0


def _narrowest(offers: Offers, low: int, widths: range, amount: int, budget: Budget) -> int:
    """Return the least of some widths whose window has a division; the greatest one has."""
    return widths.start + _first(
        len(widths) - 1,
        lambda index: _has_division(offers, low, low + widths[index], amount, budget),
    )


def _has_division(offers: Offers, bottom: int, top: int, amount: int, budget: Budget) -> bool:
    cut = _within(offers, bottom, top)
    return cut is not None and is_viable(cut, amount, budget)


def _first(ceiling: int, holds: Callable[[int], bool]) -> int:
    """Return the first number from 0 for which something holds, `ceiling + 1` if none does."""
    low, high = 0, ceiling + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _most_below(offers: Sequence[Offer], top: int) -> int:
    """Return what the offers give at most if they keep below a level as far as they can."""
    return sum(
        max(offer.least, min(offer.most, top // offer.step * offer.step)) for offer in offers
    )


def _least_above(offers: Sequence[Offer], bottom: int) -> int:
    """Return what the offers give at least if they keep above a level as far as they can."""
    return sum(
        min(offer.most, max(offer.least, -(-bottom // offer.step) * offer.step))
        for offer in offers
    )


def _within(offers: Sequence[Offer], bottom: int, top: int) -> Offers | None:
    """Return the offers cut to a window, None if one has no part there."""
    cut = []
    for offer in offers:
        part = Offer.of(
            offer.position, (max(offer.least, bottom), min(offer.most, top)), offer.step
        )
        if part is None:
            return None
        cut.append(part)
    return tuple(cut)


class SplitClass:
    """A class to split: how much each provider may give under an anchor.

    Attributes:
        name: Of the class.
        amount: What is to be divided.
    """

    def __init__(self, problem: Problem, name: str, relation: Relation) -> None:
        plan = problem.plan
        self.name = name
        self.amount = plan.split[name]
        self._divide = even if plan.request.split_policy == SplitPolicy.EVEN else pack
        self._forest = problem.forest
        self._budget = problem.budget
        self._relation = relation
        self._most = most_by_consumed(self._forest, relation.pairs, name)
        """What each pair may give at most for what it consumes; None where nothing does."""
        self._known: dict[int, list[tuple[int, int, int, int]]] = {}

    def divisions(
        self, anchor: int, taken: Mapping[int, int], worth: Worth | None = None
    ) -> Iterator[Division]:
        """Yield position and units of each part, one division for each minimal viable set.

        Args:
            anchor: Number of the anchor.
            taken: What other groups take, by position.
            worth: Returns what an offer is worth: sets of those that are worth most come first.
        """
        offers = self.offers(anchor, taken)
        rank = {offer: number for number, offer in enumerate(offers)}
        if worth is not None:
            value = {offer: worth(self.name, offer) for offer in offers}
            offers = tuple(sorted(offers, key=lambda offer: -value[offer]))
        for members in minimal_sets(offers, self.amount, self._budget):
            in_order = tuple(sorted(members, key=rank.__getitem__))
            parts = self._divide(in_order, self.amount, self._budget)
            yield tuple(
                (offer.position, part) for offer, part in zip(in_order, parts, strict=True)
            )

    def division_at(
        self, other: int, anchor: int, positions: Collection[int], taken: Mapping[int, int]
    ) -> list[tuple[str, int, int]]:
        """Return the parts of some positions as another anchor divides them."""
        order = self._forest.order
        root = order.roots[other]

        def rank_of(offer: Offer) -> tuple[bool, int | str]:
            if order.root[offer.position] == root:
                return False, offer.position
            return True, self._forest.uuid_of(int(order.row[offer.position]))

        offers = [offer for offer in self.offers(anchor, taken) if offer.position in positions]
        offers.sort(key=rank_of)
        parts = self._divide(offers, self.amount, self._budget)
        return [
            (self.name, offer.position, part) for offer, part in zip(offers, parts, strict=True)
        ]

    def offers(self, anchor: int, taken: Mapping[int, int]) -> Offers:
        """Return what each provider can give besides the amounts of other groups."""
        if anchor not in self._known:
            self._known = {anchor: self._givers(anchor)}
        possible = (
            Offer.of(position, (least, min(most - taken.get(position, 0), self.amount)), step)
            for position, least, most, step in self._known[anchor]
        )
        return tuple(offer for offer in possible if offer is not None)

    def _givers(self, anchor: int) -> list[tuple[int, int, int, int]]:
        """Return position, min_unit, room and step_size: the tree in pre-order, then sharing ones."""
        positions = self._relation.providers_of(anchor).tolist()
        order = self._forest.order
        root = order.roots[anchor]
        own_positions = [position for position in positions if order.root[position] == root]
        lent = [position for position in positions if order.root[position] != root]
        lent.sort(key=lambda position: self._forest.uuid_of(int(order.row[position])))
        columns = self._forest.classes[self._forest.catalogue.resource_classes[self.name].id]
        indices = search_ascending(columns.row.values, order.row[own_positions + lent])
        room = columns.room(indices).tolist()
        if self._most is not None:
            pairs = self._relation.pairs
            of_anchor = range(int(pairs.starts[anchor]), int(pairs.starts[anchor + 1]))
            most = {int(pairs.provider[pair]): int(self._most[pair]) for pair in of_anchor}
            room = [
                min(units, most[position])
                for units, position in zip(room, own_positions + lent, strict=True)
            ]
        return list(
            zip(
                own_positions + lent,
                columns.min_unit.values[indices].tolist(),
                room,
                columns.step_size.values[indices].tolist(),
                strict=True,
            )
        )
