# SPDX-License-Identifier: Apache-2.0
"""Candidates in which several providers give one amount (contract page 97, section 2).

The slots that take one provider each are filled first, by the usual search. To each combination
that it finds, the minimal viable sets of the split classes are then added: only now is it known
what the other groups leave of each provider.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
import orjson

from treeclaim.forest.domains.filters import with_any_trait_by_place
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.solve.search import Search
from treeclaim.forest.split.division import Share, Shares, even, minimal_sets, pack
from treeclaim.forest.table.columns import Rows
from treeclaim.model.request import NO_GROUP, SplitPolicy

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


class Splitter:
    """Draws the candidates of a search that splits."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._plan = search.plan
        self._classes = [
            _SplitClass(search, name, relation)
            for name, relation in zip(search.plan.split, search.split_relations, strict=True)
        ]
        self._required = [
            with_any_trait_by_place(search.forest, names) for names in search.plan.required
        ]

    def selected(self) -> list[SplitCandidate]:
        """Return those candidates that the limit and the operator's options ask for."""
        options, limit = self._search.options, self._plan.request.limit
        if options.randomize:
            found = list(islice(self._distinct(), options.maximum))
            random.shuffle(found)
            return found[:limit]
        wanted = [one for one in (options.maximum, limit) if one is not None]
        return list(islice(self._distinct(), min(wanted, default=None)))

    def has_candidate(self, anchor: int) -> bool:
        """Tell whether there is some candidate under an anchor, given by its number."""
        found = self._of_anchor(np.array([anchor], dtype=np.int64))
        return next(found, None) is not None

    def _distinct(self) -> Iterator[SplitCandidate]:
        """Yield the candidates; one of sharing providers alone may come from several anchors."""
        seen: set[SplitCandidate] = set()
        for one in self._drawn():
            if one not in seen:
                seen.add(one)
                yield one

    def _drawn(self) -> Iterator[SplitCandidate]:
        if not self._search.options.breadth_first:
            for anchors, chosen in self._search.anchored_blocks():
                for anchor, one in zip(anchors.tolist(), chosen.tolist(), strict=True):
                    yield from self._divided(anchor, tuple(one))
            return
        waiting = [self._of_anchor(self._search.anchors[[at]]) for at in self._indices()]
        while waiting:
            still = []
            for source in waiting:
                one = next(source, None)
                if one is not None:
                    yield one
                    still.append(source)
            waiting = still

    def _indices(self) -> range:
        return range(len(self._search.anchors))

    def _of_anchor(self, anchor: Rows) -> Iterator[SplitCandidate]:
        for anchors, chosen in self._search.anchored_blocks(anchor):
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
            self._search.budget.check()
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

    def __init__(self, search: Search, name: str, relation: Relation) -> None:
        plan = search.plan
        self.name = name
        self._amount = plan.split[name]
        self._divide = even if plan.request.split_policy == SplitPolicy.EVEN else pack
        self._forest = search.forest
        self._check = search.budget.check
        self._relation = relation
        self._known: dict[int, list[tuple[int, int, int, int]]] = {}

    def divisions(self, anchor: int, taken: Mapping[int, int]) -> Iterator[_Division]:
        """Yield place and units of each part, one division for each minimal viable set."""
        for shares in minimal_sets(self._shares(anchor, taken), self._amount, self._check):
            parts = self._divide(shares, self._amount)
            yield tuple((one.place, part) for one, part in zip(shares, parts, strict=True))

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
