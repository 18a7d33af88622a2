# SPDX-License-Identifier: Apache-2.0
"""Relates a request to a Forest: the possible providers of each slot, and the rules between slots."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains import consumed
from treeclaim.forest.domains.consumed import is_any_consuming
from treeclaim.forest.domains.filters import (
    have_any_trait,
    require_known_names,
    values_by_row,
)
from treeclaim.forest.domains.relation import (
    Relation,
    build_relations,
    build_split_relation,
    find_allowed_anchors,
    have_common_provider,
)
from treeclaim.forest.question.plan import Plan, get_plan
from treeclaim.forest.solve.partial.rules import Rules
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.order import TreeOrder
from treeclaim.model.request import NO_GROUP, CandidateRequest, SearchOptions


@dataclass(frozen=True)
class Problem:
    """A constraint satisfaction problem: slots, their possible providers, and the rules between them.

    It reads the Forest lazily: amounts when anchors are staged, UUIDs when candidates are serialized.
    The Forest must not change before the answer is complete.

    Attributes:
        options: The operator's options.
        relations: For each slot, its possible providers with their anchors.
        split_relations: For each split class, the providers that may give a part, with their anchors.
        allowed: Mask of the trees that may be anchors, shape (trees,); None for all.
    """

    forest: Forest
    plan: Plan
    options: SearchOptions
    relations: tuple[Relation, ...] = field(repr=False)
    split_relations: tuple[Relation, ...] = field(repr=False)
    allowed: Mask | None = field(repr=False)
    rules: Rules = field(repr=False)
    order: TreeOrder = field(repr=False)
    budget: Budget = field(repr=False)

    @cached_property
    def giving(self) -> tuple[int, ...]:
        """Return the slots with resources: their providers determine the trees of a candidate."""
        return tuple([slot for slot, want in enumerate(self.plan.slots) if want.resources])

    @cached_property
    def consumes(self) -> bool:
        """Return whether any possible provider consumes other inventories (page 102, section 2)."""
        relation_names = [
            (relation, want.resources)
            for relation, want in zip(self.relations, self.plan.slots, strict=True)
        ]
        split = zip(self.split_relations, self.plan.split, strict=True)
        return any(
            is_any_consuming(self.forest, relation.pairs, names)
            for relation, names in [
                *relation_names,
                *((relation, [name]) for relation, name in split),
            ]
        )

    @property
    def are_trees_apart(self) -> bool:
        """Return whether trees are independent: each candidate uses the providers of one tree."""
        return not self.plan.split and all(relation.pairs.is_local for relation in self.relations)

    @property
    def may_leave_anchors(self) -> bool:
        """Return whether a candidate may belong to a tree other than its anchor's.

        A candidate belongs to the trees of the providers that give it resources. Sharing providers count
        only if all of them are sharing (page 98, section 1).
        """
        giving = [self.relations[slot] for slot in self.giving]
        return all(relation.has_sharing for relation in (*giving, *self.split_relations))

    @property
    def may_repeat(self) -> bool:
        """Return whether anchors may have a candidate in common: one of sharing providers alone."""
        return all(relation.has_sharing for relation in (*self.relations, *self.split_relations))

    @cached_property
    def wanted_count(self) -> int | None:
        """Return the greatest number of candidates to draw; None for all."""
        limits = [self.plan.request.limit, self.options.maximum]
        if self.options.randomize or not self.plan.request.nested:
            limits = [self.options.maximum]
        return min([limit for limit in limits if limit is not None], default=None)

    @property
    def takes_turns(self) -> bool:
        """Return whether the anchors yield candidates in turn, which requires all anchors in one stage."""
        return self.options.breadth_first and not self.plan.split


def relate(
    forest: Forest,
    request: CandidateRequest,
    options: SearchOptions,
    budget: Budget,
) -> Problem:
    """Find the possible providers of each slot.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: if the request has an unknown name.
    """
    require_known_names(forest, request)
    # Mixes are large, and only the scoring reads them.
    plan = get_plan(request if request.order is None else request.without_mixes())
    order = forest.order
    relations_of_groups = [build_relations(forest, group, budget) for group in plan.groups]
    relations = tuple([relations_of_groups[slot.group][slot.part] for slot in plan.slots])
    budget.hold(
        sum([relation.pairs.nbytes for of_group in relations_of_groups for relation in of_group])
    )
    if plan.joint_constraints:
        plan = plan.without_disjoint(_find_disjoint(forest, plan, relations, budget))
    split = _relate_split_classes(forest, plan, budget) if plan.split else ()
    budget.check()
    unsuffixed = [group.conditions for group in request.groups if group.suffix == NO_GROUP]
    return Problem(
        forest=forest,
        plan=plan,
        options=options,
        relations=relations,
        split_relations=split,
        allowed=find_allowed_anchors(forest, request.root, unsuffixed[0] if unsuffixed else None),
        rules=_make_rules(forest, plan, relations, order, budget),
        order=order,
        budget=budget,
    )


def _find_disjoint(
    forest: Forest, plan: Plan, relations: Sequence[Relation], budget: Budget
) -> frozenset[tuple[int, str]]:
    """Return slots and classes for which no other slot can use the same provider.

    Ports on different physical networks are an example: their amounts need not be summed.
    """
    disjoint = set()
    for constraint in plan.joint_constraints:
        name = constraint.resource_class
        if name is not None and not all(
            relations[slot] is relations[constraint.slots[0]] for slot in constraint.slots
        ):
            counts = Counter(id(relations[slot].pairs) for slot in constraint.slots)
            pairs = {id(relations[slot].pairs): relations[slot].pairs for slot in constraint.slots}
            for slot in constraint.slots:
                budget.check()
                slot_pairs = relations[slot].pairs
                if counts[id(slot_pairs)] == 1 and not any(
                    have_common_provider(forest, slot_pairs, rival_pairs)
                    for rival_pairs in pairs.values()
                    if rival_pairs is not slot_pairs
                ):
                    disjoint.add((slot, name))
    return frozenset(disjoint)


def _relate_split_classes(forest: Forest, plan: Plan, budget: Budget) -> tuple[Relation, ...]:
    (unsuffixed,) = [group for group in plan.request.groups if group.suffix == NO_GROUP]
    relations = []
    for name in plan.split:
        budget.check()
        relations.append(build_split_relation(forest, unsuffixed, name, budget))
    return tuple(relations)


def _find_consuming_slots(
    forest: Forest, plan: Plan, relations: Sequence[Relation]
) -> tuple[int, ...]:
    if not consumed.has_consumption(forest) or not plan.request.sums_groups:
        return ()
    slots = [
        (relation.pairs, list(slot.counted))
        for relation, slot in zip(relations, plan.slots, strict=True)
    ]
    does_any_consume = any(
        consumed.is_any_consuming(forest, pairs, names) for pairs, names in slots
    )
    using = tuple(
        number
        for number, (pairs, names) in enumerate(slots)
        if consumed.may_use_twice(forest, pairs, names)
    )
    return using if len(using) > 1 and does_any_consume else ()


def _make_rules(
    forest: Forest,
    plan: Plan,
    relations: Sequence[Relation],
    order: TreeOrder,
    budget: Budget,
) -> Rules:
    # With split classes, the traits of the unsuffixed group are checked after the split.
    masks = []
    for names in () if plan.split else plan.required:
        budget.check()
        masks.append(have_any_trait(forest, names))
    return Rules(
        steps=plan.steps,
        lists=plan.lists,
        unsuffixed=plan.unsuffixed,
        required=tuple(masks),
        values={listed.name: values_by_row(forest, listed.name) for listed in plan.values},
        roots=order.root,
        ends=order.end,
        consuming=_find_consuming_slots(forest, plan, relations),
    )
