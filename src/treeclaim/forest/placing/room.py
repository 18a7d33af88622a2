# SPDX-License-Identifier: Apache-2.0
"""The room beside the placed consumers, for those that draw from holds and for those that do not.

A consumer that draws takes first what its holds have, which counts as used already, and only the rest
out of what is free (contract page 100, section 2). So what is free differs between those who may draw
from different holds: each set of holds has a scratch of its own, and what a consumer takes is taken in
each, less what it drew from holds that are not that one's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import are_any
from treeclaim.forest.placing.queries import Query, query_of
from treeclaim.forest.placing.scratch import Allocation, Scratch
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts, with_free
from treeclaim.model.request import CandidateRequest

Holds = tuple[str, ...]
"""Uuids of holds, in the order in which they are drawn from."""


@dataclass(slots=True)
class _View:
    """The room of consumers that may draw from some holds.

    Attributes:
        scratch: What is used, less what these holds have.
        names: The resource classes that it follows; None for all.
        queries: By request, made when first asked for.
        taken: All that was taken here.
    """

    scratch: Scratch
    names: frozenset[str] | None
    queries: dict[CandidateRequest, Query] = field(default_factory=dict)
    taken: list[Allocation] = field(default_factory=list)


class Room:
    """The room, and the queries that are answered from it.

    What a query begins with takes much longer than to place a consumer. So where all begins again with
    another domain, what was taken is given back, and the queries stay.
    """

    def __init__(self, forest: Forest, budget: Budget) -> None:
        """Begin with what is used now, and with what the holds have that the Forest knows.

        Args:
            forest: Where to search; it is not changed.
            budget: What all queries may cost.
        """
        self._budget = budget
        self._everybody = _View(Scratch(forest), None)
        self._views: dict[tuple[Holds, frozenset[str], bool], _View] = {}
        self._held = forest.held
        self._left: dict[str, dict[tuple[str, str], int]] = {}
        """The present amounts of the holds that were drawn from, by provider UUID and class."""

    def begin(self, held: HeldAmounts) -> None:
        """Forget what was taken and drawn: it is written, and holds have the given amounts."""
        self._views.clear()
        self._left.clear()
        self._everybody.taken.clear()
        self._held = held

    @property
    def everybody(self) -> Scratch:
        """Return what is used for those who draw from no hold."""
        return self._everybody.scratch

    def scratch(
        self, request: CandidateRequest, holds: Holds = (), *, is_hold: bool = False
    ) -> Scratch:
        """Return what is used for those who want something; see `query`."""
        return self._view(request, holds, is_hold=is_hold).scratch

    def query(
        self, request: CandidateRequest, holds: Holds = (), *, is_hold: bool = False
    ) -> Query:
        """Return the query of a request, made when it is first asked for.

        Args:
            request: What consumers want.
            holds: From which they may draw.
            is_hold: Whether they are holds, to which min_unit, max_unit and step_size do not apply.
        """
        view = self._view(request, holds, is_hold=is_hold)
        if request not in view.queries:
            view.queries[request] = query_of(view.scratch, request, self._budget)
        return view.queries[request]

    def _view(self, request: CandidateRequest, holds: Holds, *, is_hold: bool) -> _View:
        if not holds and not is_hold:
            return self._everybody
        names = request.classes
        if are_any(self.everybody.forest):
            # What others take of any class may be consumed of what these want.
            catalogue = self.everybody.forest.catalogue
            names = frozenset(
                catalogue.class_by_id[number].name for number in self.everybody.forest.classes
            )
        view = self._views.get((holds, names, is_hold))
        if view is None:
            parts = [self._holdings(hold) for hold in holds]
            forest = with_free(self.everybody.forest, parts, self._budget)
            if is_hold:
                for name in request.classes & forest.catalogue.resource_classes.keys():
                    number = forest.catalogue.resource_classes[name].id
                    if number in forest.classes:
                        forest.classes[number] = forest.classes[number].without_units()
            scratch = Scratch(forest)
            # What others take is taken here too, so nothing may be common with their scratch.
            scratch.copy_used(names & scratch.forest.catalogue.resource_classes.keys())
            scratch.bar_as(self.everybody)
            view = self._views[holds, names, is_hold] = _View(scratch, names)
        return view

    def _holdings(self, hold: str) -> dict[str, dict[str, int]]:
        """Return what a hold has left."""
        holdings: dict[str, dict[str, int]] = {}
        for (uuid, name), amount in self._left_of(hold).items():
            holdings.setdefault(uuid, {})[name] = amount
        return holdings

    def _left_of(self, hold: str) -> dict[tuple[str, str], int]:
        if hold not in self._left:
            self._left[hold] = {
                (uuid, name): amount
                for uuid, amounts in self._held.by_hold.get(hold, {}).items()
                for name, amount in amounts.items()
            }
        return self._left[hold]

    def take(self, allocations: Iterable[Allocation], holds: Holds = ()) -> None:
        """Take what a candidate gives, first out of what some holds have there.

        What a hold had that was drawn counts as used as before, and is not there to be drawn again.
        """
        allocation_list = list(allocations)
        drawn = self._drawn(allocation_list, holds)
        for view_holds, view in [
            ((), self._everybody),
            *((key[0], v) for key, v in self._views.items()),
        ]:
            undrawn_allocations = [
                (position, name, amount - sum(n for hold, n in parts if hold not in view_holds))
                for (position, name, amount), parts in zip(allocation_list, drawn, strict=True)
                if view.names is None or name in view.names
            ]
            net = [allocation for allocation in undrawn_allocations if allocation[2]]
            view.taken += net
            view.scratch.take(net)
            view.scratch.begin_conditions(allocation_list)

    def _drawn(self, allocations: list[Allocation], holds: Holds) -> list[list[tuple[str, int]]]:
        """Draw what some allocations may; return for each which hold gave how much."""
        drawn: list[list[tuple[str, int]]] = []
        for position, name, amount in allocations:
            parts: list[tuple[str, int]] = []
            for hold in holds:
                hold_amounts = self._left_of(hold)
                place = (self.everybody.forest.uuid_of(position), name)
                part = min(hold_amounts.get(place, 0), amount - sum(n for _, n in parts))
                if part:
                    hold_amounts[place] -= part
                    parts.append((hold, part))
            drawn.append(parts)
        return drawn

    def give_back(self) -> None:
        """Let nothing be taken any more."""
        for view in (self._everybody, *self._views.values()):
            view.scratch.give_back(view.taken)
            view.scratch.end_conditions()
            view.taken.clear()
        self._left.clear()

    def held(self, holds: Holds) -> HeldAmounts:
        """Return what all holds but some have left by now."""
        if self._held.everywhere is None:
            return self._held
        drawn = {
            hold: self._drawn_of(hold, unused_amounts)
            for hold, unused_amounts in self._left.items()
            if hold not in holds
        }
        forest = self.everybody.forest
        gone = [*self._held.of_holds(forest, holds), *HeldAmounts(drawn).of_holds(forest, drawn)]
        return HeldAmounts({}, self._held.everywhere.less(gone))

    def _drawn_of(
        self, hold: str, unused_amounts: Mapping[tuple[str, str], int]
    ) -> dict[str, dict[str, int]]:
        """Return what a hold had and has not any more."""
        return {
            uuid: {name: amount - unused_amounts[uuid, name] for name, amount in amounts.items()}
            for uuid, amounts in self._held.by_hold.get(hold, {}).items()
        }
