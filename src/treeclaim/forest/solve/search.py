# SPDX-License-Identifier: Apache-2.0
"""The whole question: which combinations of providers satisfy a request?

`search` reads like the algorithm: relate providers to slots, keep the anchors that every slot
reaches, drop those that cannot serve competing groups or have no common subtree, and combine what
is left, lazily. Everything a `Search` holds is copied out of the Forest, so its candidates may be
drawn later, while the Forest moves on.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names, with_any_trait_by_place
from treeclaim.forest.domains.relation import (
    Relation,
    anchors_allowed,
    have_common_provider,
    relations_of,
    split_relation,
)
from treeclaim.forest.domains.slots import Options, options_of
from treeclaim.forest.feasibility.competition import Competition
from treeclaim.forest.feasibility.subtrees import heads_of
from treeclaim.forest.question.plan import Plan, plan_of
from treeclaim.forest.solve.blocks import Anchored, Block, Choices, most_rows
from treeclaim.forest.solve.combine import Combiner
from treeclaim.forest.solve.first_anchors import FirstAnchors
from treeclaim.forest.solve.rules import Rules
from treeclaim.forest.solve.selection import first_candidates, in_turn, sample, without_repeats
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.request import NO_GROUP, CandidateRequest, SearchOptions

_FRUITLESS_STRIDE = 8
"""How much further the search reaches after trees under which there was nothing."""

_LARGEST_BLOCK = 8192
"""Partial candidates that are extended together at most."""

_SMALLEST_BLOCK = 64


_FIRST_REACH = 1024
"""Roots that are looked at together at first, to find those under which every slot has options."""

_EAGER = 10_000
"""Where more candidates than this are wanted, all anchors are made ready at once."""


@dataclass(frozen=True)
class Search:
    """A question whose answers can be drawn.

    Attributes:
        forest: Where the names and summaries of the providers found are.
        plan: The question.
        options: What the operator configured.
        relations: Who may take each slot, and under which anchor.
        split_relations: Who may give a part of each class to split, and under which anchor.
        allowed: Which roots may be anchors, shape (roots,); None for all.
        rules: What must hold between the providers of a candidate.
        budget: When it is given up.
    """

    forest: Forest
    plan: Plan
    options: SearchOptions
    relations: tuple[Relation, ...] = field(repr=False)
    split_relations: tuple[Relation, ...] = field(repr=False)
    allowed: Mask | None = field(repr=False)
    rules: Rules = field(repr=False)
    budget: Budget = field(repr=False)

    def all_blocks(self) -> Iterator[Choices]:
        """Yield all candidates up to the operator's maximum, without the limit.

        No candidate comes twice. Each block holds places, int64, shape (candidates, slots).
        """
        drawn = without_repeats(self._drawn(), self.first_anchors())
        return first_candidates(drawn, self.options.maximum)

    def distinct_blocks(self, anchors: Rows | None = None) -> Iterator[Anchored]:
        """Yield all candidates in the usual order, with the numbers of their anchors.

        No candidate comes twice; the operator's options do not apply.

        Args:
            anchors: The only anchors to look at, ascending; None for all.
        """
        first = self.first_anchors()
        for block in self.anchored_blocks(anchors):
            kept = slice(None) if first is None else first.are_first(block)
            yield Anchored(block.anchor[kept], block.chosen[kept])

    def first_anchors(self) -> FirstAnchors | None:
        """Return what tells repetitions, None if no candidate can be of sharing providers alone."""
        if not all(one.has_sharing for one in self.relations):
            return None
        sharing = with_any_trait_by_place(self.forest, (SHARING_TRAIT,))
        return FirstAnchors(self.relations, self.allowed, sharing, self.budget)

    def selected(self, blocks: Iterator[Choices]) -> Iterator[Choices]:
        """Yield those of all candidates that the limit and the operator's options ask for."""
        if self.options.randomize:
            limit = self.plan.request.limit
            return sample(blocks, limit, np.random.default_rng(), self.budget)
        return first_candidates(blocks, self.plan.request.limit)

    @property
    def is_eager(self) -> bool:
        """Tell whether everything is taken out of the Forest before the first candidate."""
        wanted = self._wanted
        return not self.plan.split and (
            wanted is None or wanted > _EAGER or self.options.breadth_first
        )

    @property
    def _wanted(self) -> int | None:
        """Return how many candidates will be drawn at most; None for all there are."""
        limits = [self.plan.request.limit, self.options.maximum]
        if self.options.randomize or not self.plan.request.nested:
            limits = [self.options.maximum]
        return min((one for one in limits if one is not None), default=None)

    @cached_property
    def anchors(self) -> Rows:
        """Return the numbers of the roots under which each slot has some provider, ascending."""
        return self._anchors_among(0, len(self.forest.order.roots))

    def _anchors_among(self, first: int, end: int) -> Rows:
        """Return those of a range of roots under which each slot has some provider."""
        reached = np.ones(end - first, dtype=np.bool_)
        if self.allowed is not None:
            reached &= self.allowed[first:end]
        for relation in (*self.relations, *self.split_relations):
            reached &= relation.reached(first, end)
        return np.flatnonzero(reached) + first

    def _drawn(self) -> Iterator[Anchored]:
        if self.options.breadth_first:
            stage = self.stage(self.anchors)
            with self.budget.held(stage.nbytes):
                for block in in_turn(stage.combiner.blocks, stage.live, self._block_size):
                    yield Anchored(self.anchors[block.anchor], block.chosen)
        else:
            yield from self.anchored_blocks()

    @property
    def _block_size(self) -> int:
        """Return how many partial candidates are extended together."""
        largest = most_rows(len(self.relations), _LARGEST_BLOCK)
        wanted = self._wanted
        return largest if wanted is None else min(max(wanted, _SMALLEST_BLOCK), largest)

    def anchored_blocks(self, anchors: Rows | None = None) -> Iterator[Anchored]:
        """Yield all candidates of some anchors (numbers), or of all, one anchor after the other.

        Yields:
            The number of the anchor of each candidate, and the places chosen for its slots.
        """
        rows = self._block_size
        size = len(self.forest.order.roots) if self.is_eager else rows
        reached = self._reached_in_turn() if anchors is None else iter([anchors])
        waiting = np.empty(0, dtype=np.int64)
        while True:
            while len(waiting) < size and (more := next(reached, None)) is not None:
                waiting = np.concatenate([waiting, more])
            if not len(waiting):
                return
            some, waiting = waiting[:size], waiting[size:]
            stage = self.stage(some)
            is_fruitless = True
            with self.budget.held(stage.nbytes):
                for anchor, chosen in stage.combiner.blocks(stage.live, rows):
                    is_fruitless = False
                    yield Anchored(some[anchor], chosen)
            # Where nothing is found small steps only make the way longer.
            size *= _FRUITLESS_STRIDE if is_fruitless else 2
            if is_fruitless:
                rows = min(
                    rows * _FRUITLESS_STRIDE, most_rows(len(self.relations), _LARGEST_BLOCK)
                )

    def _reached_in_turn(self) -> Iterator[Rows]:
        """Yield the same as `anchors` bit by bit, so that a few candidates need not wait for all.

        Where everything is wanted it is taken out of the Forest at once.
        """
        first, count = 0, len(self.forest.order.roots)
        reach = count if self.is_eager else _FIRST_REACH
        while first < count:
            yield self._anchors_among(first, min(first + reach, count))
            first += reach
            reach *= 2

    def matching_anchors(self) -> Rows:
        """Return the places of the roots under which there is some candidate, ascending."""
        anchors = self.anchors
        if len(anchors) and self.plan.wants:
            stage = self.stage(anchors)
            # One candidate of each is enough, so small blocks get there sooner.
            rows = max(2 * len(stage.live), _SMALLEST_BLOCK)
            with self.budget.held(stage.nbytes):
                anchors = anchors[stage.combiner.matching(stage.live, rows)]
        return self.forest.order.roots[anchors]

    def witnesses(self, slot: int, relation: Relation, known: Mask) -> Iterator[Choices]:
        """Yield candidates in which the providers of a slot are some that are not known yet.

        Args:
            slot: The slot.
            relation: Its providers, instead of those of the search.
            known: Whose candidates are not asked for, shape (places,). The caller may add to them
                whoever is in a candidate that it was given.
        """
        relations = (*self.relations[:slot], relation, *self.relations[slot + 1 :])
        sizes = [one.size for one in relations]
        # The slot is filled first, so that what is known is dropped at once.
        sizes[slot] = 0
        rules = replace(self.rules, steps=self.plan.steps(sizes))
        search = replace(self, relations=relations, rules=rules)
        stage = search.stage(search._anchors_among(0, len(self.forest.order.roots)))  # noqa: SLF001

        def is_known(block: Block) -> Mask:
            filled = block.chosen[:, slot]
            return (filled >= 0) & known[filled]

        rows = max(2 * len(stage.live), _SMALLEST_BLOCK)
        with self.budget.held(stage.nbytes):
            for anchored in stage.combiner.until(stage.live, rows, is_known):
                yield anchored.chosen

    def stage(self, anchors: Rows) -> "_Stage":
        """Make ready the candidates of some anchors; costs grow with their options alone."""
        known: dict[int, Options] = {}
        options = []
        contested = {one.resource_class for one in self.plan.contests}
        for want, relation in zip(self.plan.wants, self.relations, strict=True):
            self.budget.check()
            if id(relation) not in known:
                names = [name for name in want.resources if name in contested]
                known[id(relation)] = options_of(self.forest, relation, anchors, names)
            options.append(known[id(relation)])
        order = self.forest.order
        plan = self.plan
        competition = Competition(
            plan.wants,
            options,
            plan.contests,
            plan.lists,
            len(order.row),
            budget=self.budget,
        )
        self.budget.check()
        live = competition.promising(len(anchors))
        heads = []
        for members, contests in zip(plan.lists, plan.inner_contests, strict=True):
            self.budget.check()
            found = heads_of(options, members, contests, len(anchors), order)
            heads.append(found)
            live = live[np.diff(found.starts)[live] > 0]
        combiner = Combiner(options, heads, self.rules, competition, self.budget)
        return _Stage(live, combiner, sum(one.nbytes for one in known.values()))


@dataclass(frozen=True, slots=True)
class _Stage:
    """Some anchors made ready.

    Attributes:
        live: Indices of the anchors that may have candidates, ascending, int64.
        combiner: Draws their candidates.
        nbytes: Memory that their options take.
    """

    live: Rows
    combiner: Combiner
    nbytes: int


def search(
    forest: Forest,
    request: CandidateRequest,
    options: SearchOptions,
    budget: Budget | None = None,
) -> Search:
    """Prepare the answer to a request; the work that grows with the answer is left for later.

    Args:
        forest: Where to search.
        request: What is asked.
        options: What the operator configured.
        budget: When to give up; by default as the options say, from now on.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: if the request names what does not exist.
    """
    require_known_names(forest, request)
    plan = plan_of(request)
    budget = budget or Budget.of(options)
    found = [relations_of(forest, group, budget) for group in plan.groups]
    relations = tuple(found[want.group][want.part] for want in plan.wants)
    budget.hold(sum(one.pairs.nbytes for some in found for one in some))
    plan = plan.relieved(_idle(forest, plan, relations, budget))
    split = _split_relations(forest, plan)
    unsuffixed = [group.conditions for group in request.groups if group.suffix == NO_GROUP]
    return Search(
        forest=forest,
        plan=plan,
        options=options,
        relations=relations,
        split_relations=split,
        allowed=anchors_allowed(forest, request.root, unsuffixed[0] if unsuffixed else None),
        rules=_rules(forest, plan, relations),
        budget=budget,
    )


def _idle(
    forest: Forest, plan: Plan, relations: Sequence[Relation], budget: Budget
) -> frozenset[tuple[int, str]]:
    """Return slots and classes for which no other slot can use the same provider.

    Ports on different physical networks are an example: nothing has to be summed up.
    """
    idle = set()
    for contest in plan.contests:
        name = contest.resource_class
        if name is not None and not all(
            relations[one] is relations[contest.slots[0]] for one in contest.slots
        ):
            counts = Counter(id(relations[one].pairs) for one in contest.slots)
            pairs = {id(relations[one].pairs): relations[one].pairs for one in contest.slots}
            for one in contest.slots:
                budget.check()
                mine = relations[one].pairs
                others = [it for it in pairs.values() if it is not mine]
                if counts[id(mine)] == 1 and not any(
                    have_common_provider(forest, mine, it) for it in others
                ):
                    idle.add((one, name))
    return frozenset(idle)


def _split_relations(forest: Forest, plan: Plan) -> tuple[Relation, ...]:
    if not plan.split:
        return ()
    (conditions,) = [one.conditions for one in plan.request.groups if one.suffix == NO_GROUP]
    return tuple(
        split_relation(forest, conditions, name, amount) for name, amount in plan.split.items()
    )


def _rules(forest: Forest, plan: Plan, relations: Sequence[Relation]) -> Rules:
    order = forest.order
    # Where something is split, the unsuffixed group is not whole before that is done.
    required = () if plan.split else plan.required
    return Rules(
        steps=plan.steps([one.size for one in relations]),
        lists=plan.lists,
        unsuffixed=plan.unsuffixed,
        required=tuple(with_any_trait_by_place(forest, names) for names in required),
        roots=order.root,
        ends=order.end,
    )
