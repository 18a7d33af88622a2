# SPDX-License-Identifier: Apache-2.0
"""Relates a request to the Forest: who can take each slot, and what must hold between slots."""

from collections import Counter
from collections.abc import Sequence

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names, with_any_trait_by_place
from treeclaim.forest.domains.relation import (
    Relation,
    anchors_allowed,
    have_common_provider,
    relations_of,
    split_relation,
)
from treeclaim.forest.question.plan import Plan, plan_of
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.rules import Rules
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import NO_GROUP, CandidateRequest, SearchOptions


def relate(
    forest: Forest,
    request: CandidateRequest,
    options: SearchOptions,
    budget: Budget,
) -> Problem:
    """Find the providers that can take each slot; what grows with the answer is left for later.

    Args:
        forest: Where to search.
        request: What is asked.
        options: What the operator configured.
        budget: What the search may cost.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: if the request names what does not exist.
    """
    require_known_names(forest, request)
    plan = plan_of(request)
    found = [relations_of(forest, group, budget) for group in plan.groups]
    relations = tuple(found[want.group][want.part] for want in plan.wants)
    budget.hold(sum(one.pairs.nbytes for some in found for one in some))
    plan = plan.relieved(_idle(forest, plan, relations, budget))
    split = _split_relations(forest, plan)
    unsuffixed = [group.conditions for group in request.groups if group.suffix == NO_GROUP]
    return Problem(
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
