# SPDX-License-Identifier: Apache-2.0
"""The whole question: which combinations of providers satisfy a request?

`search` reads like the algorithm: relate providers to slots, keep the anchors that every slot
reaches, drop those that cannot serve competing groups or have no common subtree, and combine what
is left, lazily. Everything a `Search` holds is copied out of the Forest, so its candidates may be
drawn later, while the Forest moves on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from treeclaim.forest.columns import Mask, Rows
from treeclaim.forest.combine import Choices, Combiner
from treeclaim.forest.feasibility import Competition, Contest, contests_of
from treeclaim.forest.filters import require_known_names, with_any_trait
from treeclaim.forest.forest import Forest
from treeclaim.forest.relation import Relation, anchors_allowed, relations_of
from treeclaim.forest.rules import Rules, plan_steps
from treeclaim.forest.selection import first_candidates, in_turn, sample, without_repeats
from treeclaim.forest.slots import Options, Slot, options_of
from treeclaim.forest.subtrees import heads_of
from treeclaim.model.request import NO_GROUP, CandidateRequest, RequestGroup, SearchOptions

_LARGEST_BLOCK = 8192
"""Partial candidates that are extended together at most."""

_SMALLEST_BLOCK = 64


_EAGER = 10_000
"""Where more candidates than this are wanted, all anchors are made ready at once."""


@dataclass(frozen=True, slots=True)
class Search:
    """A question whose answers can be drawn.

    Attributes:
        forest: Where the names and summaries of the providers found are.
        request: The question.
        options: What the operator configured.
        slots: In the order of the columns of a candidate.
        anchors: Places of the roots under which each slot has some provider, ascending, int64.
        contests: Which slots compete.
        rules: What must hold between the providers of a candidate.
    """

    forest: Forest
    request: CandidateRequest
    options: SearchOptions
    slots: tuple[Slot, ...]
    anchors: Rows = field(repr=False)
    contests: tuple[Contest, ...] = field(repr=False)
    rules: Rules = field(repr=False)

    def all_blocks(self) -> Iterator[Choices]:
        """Yield all candidates up to the operator's maximum, without the limit.

        No candidate comes twice. Each block holds places, int64, shape (candidates, slots).
        """
        drawn = without_repeats(self._drawn(), _sharing_places(self.forest, self.slots))
        return first_candidates(drawn, self.options.maximum)

    def selected(self, blocks: Iterator[Choices]) -> Iterator[Choices]:
        """Yield those of all candidates that the limit and the operator's options ask for."""
        if self.options.randomize:
            return sample(blocks, self.request.limit, np.random.default_rng())
        return first_candidates(blocks, self.request.limit)

    @property
    def is_eager(self) -> bool:
        """Tell whether everything is taken out of the Forest before the first candidate."""
        wanted = self._wanted
        return wanted is None or wanted > _EAGER or self.options.breadth_first

    @property
    def _wanted(self) -> int | None:
        """Return how many candidates will be drawn at most; None for all there are."""
        limits = [self.request.limit, self.options.maximum]
        if self.options.randomize or not self.request.nested:
            limits = [self.options.maximum]
        return min((one for one in limits if one is not None), default=None)

    def _drawn(self) -> Iterator[Choices]:
        wanted = self._wanted
        budget = _LARGEST_BLOCK
        if wanted is not None:
            budget = min(max(wanted, _SMALLEST_BLOCK), _LARGEST_BLOCK)
        size = len(self.anchors) if self.is_eager else budget
        start = 0
        while start < len(self.anchors):
            stage = self._stage(self.anchors[start : start + size])
            if self.options.breadth_first:
                yield from in_turn(stage.combiner.candidates, stage.live, budget)
            else:
                yield from stage.combiner.candidates(stage.live, budget)
            start += size
            size *= 2

    def _stage(self, anchors: Rows) -> "_Stage":
        """Make ready the candidates of some anchors; costs grow with their options alone."""
        known: dict[int, Options] = {}
        options = []
        contested = {one.resource_class for one in self.contests}
        for slot in self.slots:
            if id(slot.relation) not in known:
                names = [name for name in slot.resources if name in contested]
                known[id(slot.relation)] = options_of(self.forest, slot.relation, anchors, names)
            options.append(known[id(slot.relation)])
        order = self.forest.order
        competition = Competition(self.slots, options, self.contests, len(order.row))
        live = competition.promising(len(anchors))
        heads = []
        for members in self.rules.lists:
            found = heads_of([options[one] for one in members], len(anchors), order.end)
            heads.append(found)
            live = live[np.diff(found.starts)[live] > 0]
        return _Stage(live, Combiner(options, heads, self.rules, competition))


@dataclass(frozen=True, slots=True)
class _Stage:
    """Some anchors made ready.

    Attributes:
        live: Indices of the anchors that may have candidates, ascending, int64.
        combiner: Draws their candidates.
    """

    live: Rows
    combiner: Combiner


def search(forest: Forest, request: CandidateRequest, options: SearchOptions) -> Search:
    """Prepare the answer to a request; the work that grows with the answer is left for later.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: if the request names what does not exist.
    """
    require_known_names(forest, request)
    slots = _slots(request.groups, _relations(forest, request.groups))
    return Search(
        forest=forest,
        request=request,
        options=options,
        slots=slots,
        anchors=_reached_anchors(forest, request, slots),
        contests=tuple(contests_of(slots, isolate=request.isolate)),
        rules=_rules(forest, request, slots),
    )


def _relations(forest: Forest, groups: Sequence[RequestGroup]) -> list[list[Relation]]:
    """Relate each group's slots; groups that ask for the same share the same relations."""
    known: list[tuple[RequestGroup, list[Relation]]] = []
    relations = []
    for group in groups:
        for other, found in known:
            if _asks_the_same(group, other):
                relations.append(found)
                break
        else:
            known.append((group, relations_of(forest, group)))
            relations.append(known[-1][1])
    return relations


def _asks_the_same(one: RequestGroup, other: RequestGroup) -> bool:
    return (
        NO_GROUP not in (one.suffix, other.suffix)
        and one.resources == other.resources
        and one.conditions == other.conditions
    )


def _reached_anchors(forest: Forest, request: CandidateRequest, slots: Sequence[Slot]) -> Rows:
    """Return the places of the roots under which every slot has some provider, ascending."""
    unsuffixed = [group.conditions for group in request.groups if group.suffix == NO_GROUP]
    anchors = anchors_allowed(
        forest,
        request.root_required,
        request.root_forbidden,
        unsuffixed[0] if unsuffixed else None,
    )
    for relation in {id(slot.relation): slot.relation for slot in slots}.values():
        reached = np.zeros(len(forest.order.row), dtype=np.bool_)
        reached[relation.anchor] = True
        anchors = anchors[reached[anchors]]
    return anchors


def _slots(
    groups: Sequence[RequestGroup], relations: Sequence[Sequence[Relation]]
) -> tuple[Slot, ...]:
    slots = []
    for group, found in zip(groups, relations, strict=True):
        resources: list[Mapping[str, int]] = [group.resources]
        if group.suffix == NO_GROUP:
            resources = [{name: amount} for name, amount in group.resources.items()]
        for given, relation in zip(resources, found, strict=True):
            slots.append(Slot(group.suffix, given, relation))
    return tuple(slots)


def _subtree_lists(request: CandidateRequest, slots: Sequence[Slot]) -> list[tuple[int, ...]]:
    """Return the slots of each same_subtree list; lists of one say nothing."""
    by_suffix = {slot.suffix: index for index, slot in enumerate(slots)}
    lists = {frozenset(suffixes) for suffixes in request.same_subtree}
    members = [tuple(sorted(by_suffix[one] for one in suffixes)) for suffixes in lists]
    return sorted(one for one in members if len(one) > 1)


def _rules(
    forest: Forest,
    request: CandidateRequest,
    slots: Sequence[Slot],
) -> Rules:
    lists = _subtree_lists(request, slots)
    unsuffixed = tuple(one for one, slot in enumerate(slots) if slot.suffix == NO_GROUP)
    groups = [group for group in request.groups if group.suffix == NO_GROUP]
    # The provider of a single class was chosen by its traits already.
    required = groups[0].conditions.required if len(unsuffixed) > 1 else ()
    order = forest.order
    return Rules(
        steps=plan_steps(slots, lists, isolate=request.isolate, nested=request.nested),
        lists=tuple(lists),
        unsuffixed=unsuffixed,
        required=tuple(with_any_trait(forest, names)[order.row] for names in required),
        roots=order.root,
        ends=order.end,
    )


def _sharing_places(forest: Forest, slots: Sequence[Slot]) -> Mask | None:
    """Return which places are sharing providers, None if no candidate can be of them alone."""
    trait_id = forest.catalogue.sharing_trait_id
    if trait_id is None:
        return None
    sharing = forest.mask_of([forest.rows_with_trait(trait_id)])[forest.order.row]
    return sharing if all(sharing[slot.relation.provider].any() for slot in slots) else None
