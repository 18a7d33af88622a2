# SPDX-License-Identifier: Apache-2.0
"""Searches for the trees with a candidate for some constraints of a request."""

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.explain.constraints import Constraint, Reason, matching_key, reduce_request
from treeclaim.forest.solve.combine import combine_from, find_matching_anchors
from treeclaim.forest.solve.problem import Problem, relate
from treeclaim.forest.solve.stage import find_all_anchors
from treeclaim.forest.split.splitting import Splitter
from treeclaim.forest.table.columns import Mask, Rows, read_only
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import NO_GROUP, CandidateRequest, SearchOptions

ROOT_REASONS = (
    Reason.ROOT_TRAIT,
    Reason.ROOT_MEMBER_OF,
    Reason.ROOT_WHERE,
    Reason.NOT_IN_TREE,
)

AMOUNT_REASONS = (Reason.AMOUNT_UNIT, Reason.CAPACITY, Reason.CONSUMED)

_GROUP_BYTES = 2_000
"""Memory counted for each group of a cached request."""


Judge = Callable[[Forest, CandidateRequest, Sequence[Any], Mask], Mask]
"""Returns the trees with a candidate that satisfies rules.

The arguments are the Forest, the request, the values of the rules' constraints, and the mask of the
trees with candidates, shape (roots,).
"""


class MatchingTrees:
    """Finds and caches the trees that match some constraints of a request."""

    def __init__(
        self,
        forest: Forest,
        request: CandidateRequest,
        constraints: Sequence[Constraint],
        budget: Budget,
        judge: Judge | None = None,
    ) -> None:
        """Prepare searches with one budget for all; rules among the constraints require a `judge`."""
        self.forest = forest
        self.request = request
        self.constraints = constraints
        self._budget = budget
        self._judge = judge
        self._consuming = {
            constraint.value for constraint in constraints if constraint.reason == Reason.CONSUMED
        }
        self._masks: dict[Hashable, Mask] = {}

    def matching(
        self, kept_constraints: Collection[Constraint], groups: Collection[str] | None = None
    ) -> Mask:
        """Return whether each tree has a candidate, shape (roots,), in canonical order."""
        self._budget.check()
        reduced_request = reduce_request(self.request, kept_constraints, groups, self._consuming)
        matching = self._match_trees(reduced_request)
        rules = [
            constraint.value for constraint in kept_constraints if constraint.reason == Reason.RULE
        ]
        if not rules or self._judge is None or not matching.any():
            return matching
        key = (matching_key(reduced_request), *map(id, rules))
        if key not in self._masks:
            mask = self._judge(self.forest, reduced_request, rules, matching)
            self._cache(key, reduced_request, mask)
        return self._masks[key]

    def is_any_matching(self) -> bool:
        """Return whether any tree has a candidate; search in order, because an early tree usually matches."""
        request = reduce_request(self.request, self.constraints, None, self._consuming)
        with self._budget.scope():
            problem = self._relate(request)
            if problem.plan.split:
                return next(Splitter(problem).distinct(), None) is not None
            if problem.rules.consuming:
                # It searches one tree of each kind only.
                return len(find_matching_anchors(problem)) > 0
            return next(combine_from(problem, 0, 1), None) is not None

    def match_in(self, forest: Forest) -> Mask:
        """Return the trees of another Forest of the same shape that match all constraints."""
        constraints, judge = self.constraints, self._judge
        return MatchingTrees(forest, self.request, constraints, self._budget, judge).matching(
            constraints
        )

    def _match_trees(self, request: CandidateRequest) -> Mask:
        key = matching_key(request)
        if key not in self._masks:
            with self._budget.scope():
                trees = self.forest.order.tree[_matching_roots(self._relate(request))]
            matching = np.zeros(len(self.forest.order.roots), dtype=np.bool_)
            matching[trees] = True
            self._cache(key, request, matching)
        return self._masks[key]

    def _relate(self, request: CandidateRequest) -> Problem:
        return relate(self.forest, request, SearchOptions(), self._budget)

    def _cache(self, key: Hashable, request: CandidateRequest, mask: Mask) -> None:
        # The key grows with the request too.
        self._budget.hold(mask.nbytes + _GROUP_BYTES * len(request.groups))
        self._masks[key] = read_only(mask)

    def of_group(self, suffix: str) -> list[Constraint]:
        """Return the constraints of a group."""
        return [constraint for constraint in self.constraints if constraint.group == suffix]

    def needed_by(self, constraint: Constraint) -> list[Constraint]:
        """Return the constraints of the same group on which a constraint depends.

        An amount depends on its class. Conditions of providers, and all conditions of the unsuffixed
        group, depend on every class of the group.
        """
        if constraint.group is None or constraint.reason == Reason.NO_INVENTORY:
            return []
        classes = [
            each for each in self.of_group(constraint.group) if each.reason == Reason.NO_INVENTORY
        ]
        if constraint.reason in AMOUNT_REASONS:
            return [each for each in classes if each.value == constraint.value]
        needs_classes = constraint.reason == Reason.CONDITION or constraint.group == NO_GROUP
        return classes if needs_classes else []

    @property
    def ungrouped(self) -> list[Constraint]:
        """Return the constraints on the root or on several groups."""
        return [constraint for constraint in self.constraints if constraint.group is None]


def _matching_roots(problem: Problem) -> Rows:
    if not problem.plan.split:
        return find_matching_anchors(problem)
    splitter = Splitter(problem)
    matching = [
        tree
        for tree in find_all_anchors(problem).tolist()
        if next(splitter.candidates_under(np.array([tree])), None) is not None
    ]
    return problem.forest.order.roots[matching]
