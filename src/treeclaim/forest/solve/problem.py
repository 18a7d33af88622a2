# SPDX-License-Identifier: Apache-2.0
"""A request related to a Forest: what all later stages of the search work on."""

from dataclasses import dataclass, field
from functools import cached_property

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import consume
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.solve.partial.rules import Rules
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.order import TreeOrder
from treeclaim.model.request import SearchOptions


@dataclass(frozen=True)
class Problem:
    """A constraint satisfaction problem: slots, the providers that may fill each, and the rules between them.

    It refers to the Forest and copies little out of it: amounts are read when anchors are staged,
    uuids when candidates are written. So the Forest must not change before the answer is whole.

    Attributes:
        forest: Where the amounts, names and summaries are.
        plan: What is asked.
        options: What the operator configured.
        relations: Who may take each slot, and under which anchor.
        split_relations: Who may give a part of each class to split, and under which anchor.
        allowed: Which trees may be anchors, shape (trees,); None for all.
        rules: What must hold between the providers of a candidate.
        order: The canonical order of providers and trees.
        budget: What the search may cost.
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
        """Return the slots whose provider gives something: these say which trees a candidate has."""
        return tuple([slot for slot, want in enumerate(self.plan.slots) if want.resources])

    @cached_property
    def consumes(self) -> bool:
        """Tell whether any of its providers consumes of others what it gives: see page 102, section 2."""
        relation_names = [
            (relation, want.resources)
            for relation, want in zip(self.relations, self.plan.slots, strict=True)
        ]
        split = zip(self.split_relations, self.plan.split, strict=True)
        return any(
            consume(self.forest, relation.pairs, names)
            for relation, names in [
                *relation_names,
                *((relation, [name]) for relation, name in split),
            ]
        )

    @property
    def may_leave_anchors(self) -> bool:
        """Tell whether some candidate may have another tree than its anchor's.

        The trees of a candidate are those of the providers that give it something, of sharing ones
        only if all of them are (page 98, section 1). Whoever gives nothing does not count.
        """
        giving = [self.relations[slot] for slot in self.giving]
        return all(relation.has_sharing for relation in (*giving, *self.split_relations))

    @cached_property
    def wanted(self) -> int | None:
        """Return how many candidates will be drawn at most; None for all there are."""
        limits = [self.plan.request.limit, self.options.maximum]
        if self.options.randomize or not self.plan.request.nested:
            limits = [self.options.maximum]
        return min([limit for limit in limits if limit is not None], default=None)

    @property
    def takes_turns(self) -> bool:
        """Tell whether the anchors give their candidates in turn, so that all are staged at once."""
        return self.options.breadth_first and not self.plan.split
