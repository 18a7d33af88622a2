# SPDX-License-Identifier: Apache-2.0
"""A class whose amount several providers may share: how much each may give."""

from collections.abc import Collection, Iterator, Mapping

from treeclaim.forest.domains.consumed import most_by_consumed
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.division import even, pack
from treeclaim.forest.split.minimal_sets import Keeps, keep_all, minimal_sets
from treeclaim.forest.split.offers import Offer, Offers
from treeclaim.forest.table.columns import search_ascending
from treeclaim.model.request import SplitPolicy

Division = tuple[tuple[int, int], ...]
"""Place and units of each part."""


class SplitClass:
    """A class to split: how much each provider may give under an anchor.

    Attributes:
        name: The class's name.
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
        self, anchor: int, taken: Mapping[int, int], keeps: Keeps = keep_all
    ) -> Iterator[Division]:
        """Yield position and units of each part, one division for each minimal viable set of interest."""
        for offers in minimal_sets(self.offers(anchor, taken), self.amount, self._budget, keeps):
            yield self.division(offers)

    def division(self, offers: Offers) -> Division:
        """Return position and units of each part of a viable set, in the order of the offers."""
        parts = self._divide(offers, self.amount, self._budget)
        return tuple((offer.position, part) for offer, part in zip(offers, parts, strict=True))

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
        found = (
            Offer.of(position, (least, min(most - taken.get(position, 0), self.amount)), step)
            for position, least, most, step in self._known[anchor]
        )
        return tuple(offer for offer in found if offer is not None)

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
