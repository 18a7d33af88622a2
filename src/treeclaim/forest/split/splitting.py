# SPDX-License-Identifier: Apache-2.0
"""Candidates in which several providers give one amount (contract page 97, section 2).

The slots that take one provider each are filled first, by the usual problem. To each combination
that it finds, the minimal viable sets of the split classes are then added: only now is it known
what the other groups leave of each provider.
"""

import random
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
import orjson

from treeclaim.forest.domains.filters import with_any_trait_by_place
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import combined_under
from treeclaim.forest.solve.distinct import first_anchors
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.division import Share, Shares, even, minimal_sets, pack
from treeclaim.forest.table.columns import Rows
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.request import NO_GROUP, SplitPolicy

_CANDIDATE_BYTES = 400
_PART_BYTES = 200
"""Memory that is counted for a candidate, and for each part of its divisions."""

_Division = tuple[tuple[int, int], ...]
"""Place and units of each part."""


@dataclass(frozen=True, slots=True)
class SplitCandidate:
    """A candidate with divisions.

    Attributes:
        chosen: Place by slot.
        parts: Class, place and units of each part of a division.
    """

    chosen: tuple[int, ...]
    parts: tuple[tuple[str, int, int], ...]

    def places(self, plan: Plan) -> list[int]:
        """Return the providers that give something."""
        giving = [one for want, one in zip(plan.wants, self.chosen, strict=True) if want.resources]
        return [*giving, *(place for _, place, _ in self.parts)]

    def written(self, plan: Plan, uuids: Mapping[int, str]) -> bytes:
        """Write the candidate as microversion 1.39 shows it, given the uuids by place."""
        allocations: dict[str, dict[str, dict[str, int]]] = {}
        mappings: dict[str, dict[str, None]] = {}
        given = [
            (want.suffix, place, want.resources)
            for want, place in zip(plan.wants, self.chosen, strict=True)
        ]
        given += [(NO_GROUP, place, {name: units}) for name, place, units in self.parts]
        for suffix, place, resources in given:
            mappings.setdefault(suffix, {})[uuids[place]] = None
            for name, units in resources.items():
                amounts = allocations.setdefault(uuids[place], {"resources": {}})["resources"]
                amounts[name] = amounts.get(name, 0) + units
        document = {
            "allocations": allocations,
            "mappings": {suffix: list(providers) for suffix, providers in mappings.items()},
        }
        return orjson.dumps(document)


def divided(problem: Problem) -> Iterator[SplitCandidate]:
    """Yield the candidates of a problem that splits, as the limit and the operator's options ask.

    They are all found before the first one is yielded.
    """
    yield from Splitter(problem).selected()


class Splitter:
    """Draws the candidates of a search that splits."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._plan = problem.plan
        self._sharing = with_any_trait_by_place(problem.forest, (SHARING_TRAIT,))
        self._classes = [
            _SplitClass(problem, name, relation)
            for name, relation in zip(problem.plan.split, problem.split_relations, strict=True)
        ]
        self._reach = first_anchors(problem, (*problem.relations, *problem.split_relations))
        self._required = [
            with_any_trait_by_place(problem.forest, names) for names in problem.plan.required
        ]

    def selected(self) -> list[SplitCandidate]:
        """Return those candidates that the limit and the operator's options ask for."""
        options, limit = self._problem.options, self._plan.request.limit
        if options.randomize:
            found = self._first(options.maximum)
            random.shuffle(found)
            return found[:limit]
        wanted = [one for one in (options.maximum, limit) if one is not None]
        return self._first(min(wanted, default=None))

    def _first(self, count: int | None) -> list[SplitCandidate]:
        found: list[SplitCandidate] = []
        most = sys.maxsize if count is None else min(count, sys.maxsize)
        for one in islice(self._distinct(), most):
            self._problem.budget.hold(_CANDIDATE_BYTES + _PART_BYTES * len(one.parts))
            found.append(one)
        return found

    def has_candidate(self, anchor: int) -> bool:
        """Tell whether there is some candidate under an anchor, given by its number."""
        found = self._of_anchor(np.array([anchor], dtype=np.int64))
        return next(found, None) is not None

    def _distinct(self) -> Iterator[SplitCandidate]:
        """Yield the candidates; one of sharing providers alone may come from several anchors."""
        for anchor, one in self._drawn():
            if not self._is_repetition(anchor, one):
                yield one

    def _is_repetition(self, anchor: int, candidate: SplitCandidate) -> bool:
        """Tell whether an earlier anchor has the same candidate.

        There, too, all its providers can serve, but if one of them is of the anchor's own tree it
        stands elsewhere in the vector of parts, and the division may be another one.
        """
        if self._reach is None:
            return False
        keys = [*candidate.chosen, *(place for _, place, _ in candidate.parts)]
        if not self._sharing[keys].all():
            return False
        lists = self._reach.lists(
            [*range(len(candidate.chosen)), *self._split_numbers(candidate)], keys
        )
        own = set(self._problem.forest.order.tree[keys].tolist())
        seen_other = False
        other = self._reach.common(lists, 0)
        while other < anchor:
            # All anchors that are none of the providers' own trees divide alike.
            if other in own or not seen_other:
                seen_other |= other not in own
                if self._parts_at(other, anchor, candidate) == candidate.parts:
                    return True
            start = other + 1
            if seen_other:
                start = min((one for one in own if one >= start), default=anchor)
            other = self._reach.common(lists, start)
        return False

    def _split_numbers(self, candidate: SplitCandidate) -> list[int]:
        """Return the number of the relation of each part, behind those of the slots."""
        numbers = {one.name: len(candidate.chosen) + at for at, one in enumerate(self._classes)}
        return [numbers[name] for name, _, _ in candidate.parts]

    def _parts_at(
        self, other: int, anchor: int, candidate: SplitCandidate
    ) -> tuple[tuple[str, int, int], ...]:
        """Return the parts of a candidate as another anchor that reaches it divides them."""
        parts = []
        for one in self._classes:
            places = {place for name, place, _ in candidate.parts if name == one.name}
            taken = self._taken(one.name, candidate.chosen)
            parts += one.division_at(other, anchor, places, taken)
        return tuple(parts)

    def _drawn(self) -> Iterator[tuple[int, SplitCandidate]]:
        if not self._problem.options.breadth_first:
            for anchors, chosen in combined_under(self._problem):
                for anchor, one in zip(anchors.tolist(), chosen.tolist(), strict=True):
                    for found in self._divided(anchor, tuple(one)):
                        yield anchor, found
            return
        anchors = all_anchors(self._problem)
        waiting = [
            (anchor, self._of_anchor(anchors[[at]])) for at, anchor in enumerate(anchors.tolist())
        ]
        while waiting:
            still = []
            for anchor, source in waiting:
                self._problem.budget.check()
                one = next(source, None)
                if one is not None:
                    yield anchor, one
                    still.append((anchor, source))
            waiting = still

    def _of_anchor(self, anchor: Rows) -> Iterator[SplitCandidate]:
        for anchors, chosen in combined_under(self._problem, anchor):
            for number, one in zip(anchors.tolist(), chosen.tolist(), strict=True):
                yield from self._divided(number, tuple(one))

    def _divided(self, anchor: int, chosen: tuple[int, ...]) -> Iterator[SplitCandidate]:
        """Add all divisions to a combination under an anchor."""
        choices = [
            partial(one.divisions, anchor, self._taken(one.name, chosen)) for one in self._classes
        ]
        if any(next(draw(), None) is None for draw in choices):
            return
        for divisions in _product(choices):
            self._problem.budget.check()
            parts = tuple(
                (split.name, place, units)
                for split, division in zip(self._classes, divisions, strict=True)
                for place, units in division
            )
            if self._has_traits(chosen, parts):
                yield SplitCandidate(chosen, parts)

    def _taken(self, resource_class: str, chosen: Sequence[int]) -> dict[int, int]:
        """Return what other groups take of a class, by place."""
        taken: dict[int, int] = {}
        for want, place in zip(self._plan.wants, chosen, strict=True):
            if resource_class in want.resources:
                taken[place] = taken.get(place, 0) + want.resources[resource_class]
        return taken

    def _has_traits(self, chosen: Sequence[int], parts: Sequence[tuple[str, int, int]]) -> bool:
        if not self._required:
            return True
        places = [chosen[slot] for slot in self._plan.unsuffixed]
        places += [place for _, place, _ in parts]
        return all(has[places].any() for has in self._required)


class _SplitClass:
    """A class to split: who may give how much of it under an anchor."""

    def __init__(self, problem: Problem, name: str, relation: Relation) -> None:
        plan = problem.plan
        self.name = name
        self._amount = plan.split[name]
        self._divide = even if plan.request.split_policy == SplitPolicy.EVEN else pack
        self._forest = problem.forest
        self._budget = problem.budget
        self._relation = relation
        self._known: dict[int, list[tuple[int, int, int, int]]] = {}

    def divisions(self, anchor: int, taken: Mapping[int, int]) -> Iterator[_Division]:
        """Yield place and units of each part, one division for each minimal viable set."""
        for shares in minimal_sets(self._shares(anchor, taken), self._amount, self._budget):
            parts = self._divide(shares, self._amount, self._budget)
            yield tuple((one.place, part) for one, part in zip(shares, parts, strict=True))

    def division_at(
        self, other: int, anchor: int, places: Collection[int], taken: Mapping[int, int]
    ) -> list[tuple[str, int, int]]:
        """Return the parts of some places as another anchor divides them."""
        order = self._forest.order
        root = order.roots[other]

        def position(share: Share) -> tuple[bool, int | str]:
            if order.root[share.place] == root:
                return False, share.place
            return True, self._forest.uuid_of(int(order.row[share.place]))

        shares = [one for one in self._shares(anchor, taken) if one.place in places]
        shares.sort(key=position)
        parts = self._divide(shares, self._amount, self._budget)
        return [(self.name, one.place, part) for one, part in zip(shares, parts, strict=True)]

    def _shares(self, anchor: int, taken: Mapping[int, int]) -> Shares:
        """Return what each provider can give beside what other groups take of it."""
        if anchor not in self._known:
            self._known = {anchor: self._givers(anchor)}
        found = (
            Share.of(place, (least, min(most - taken.get(place, 0), self._amount)), step)
            for place, least, most, step in self._known[anchor]
        )
        return tuple(one for one in found if one is not None)

    def _givers(self, anchor: int) -> list[tuple[int, int, int, int]]:
        """Return place, min_unit, room and step_size: the tree in pre-order, then sharing ones."""
        places = self._relation.providers_of(anchor).tolist()
        order = self._forest.order
        root = order.roots[anchor]
        own = [place for place in places if order.root[place] == root]
        lent = [place for place in places if order.root[place] != root]
        lent.sort(key=lambda place: self._forest.uuid_of(int(order.row[place])))
        columns = self._forest.classes[self._forest.catalogue.resource_classes[self.name].id]
        slots = columns.row.values.searchsorted(order.row[own + lent])
        return list(
            zip(
                own + lent,
                columns.min_unit.values[slots].tolist(),
                columns.room(slots).tolist(),
                columns.step_size.values[slots].tolist(),
                strict=True,
            )
        )


def _product(choices: Sequence[Callable[[], Iterator[_Division]]]) -> Iterator[list[_Division]]:
    """Yield the product of choices that are drawn only as far as they are needed."""
    if not choices:
        yield []
        return
    for one in choices[0]():
        for more in _product(choices[1:]):
            yield [one, *more]
