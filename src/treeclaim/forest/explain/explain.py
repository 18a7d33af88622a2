# SPDX-License-Identifier: Apache-2.0
"""Why a search finds nothing, or what it finds (contract page 97, section 3).

A request is taken apart into single constraints. Everything that is told is the outcome of
searching with some of them: the funnel adds one after the other, an advice leaves one out, and a
tree is blocked by what must be left out for it to match. Each of these searches asks only which
trees have a candidate at all, for all trees at once, and none is made twice.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.explain.constraints import Constraint, constraints_of, essence_of, reduced
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.existence import matching_anchors
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.relate import relate
from treeclaim.forest.split.splitting import Splitter
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.fragments import writable
from treeclaim.model.reasons import Reason
from treeclaim.model.request import NO_GROUP, CandidateRequest, SearchOptions

_ROOT = (Reason.ROOT_TRAIT, Reason.ROOT_MEMBER_OF)

_GROUP_BYTES = 2_000
"""Memory that is counted for each group of a question whose outcome is kept."""

_MOST_PROVIDERS = 10
"""Providers shown for one reason."""


@dataclass(frozen=True)
class Focus:
    """Which trees to explain one by one.

    Attributes:
        nearest: Number of trees that do not match, the nearest first.
        tree: Uuid of a provider of the only tree to explain instead; None for the nearest ones.
    """

    nearest: int = 5
    tree: str | None = None


def explained(
    forest: Forest, request: CandidateRequest, focus: Focus, budget: Budget = UNBOUNDED
) -> dict[str, Any]:
    """Return the whole explanation as a document.

    Args:
        forest: Where to search.
        request: What is to be explained.
        focus: What the caller wants to know more of.
        budget: What the whole of it may cost.

    Raises:
        SearchGivenUpError, SearchTooLargeError: if it took more.
        TraitsNotFoundError, ResourceClassNotFoundError: if the request names what does not exist.
    """
    trees = _Trees(forest, request, list(constraints_of(request)), budget)
    empty = _Trees(forest.emptied(), request, trees.constraints, budget)
    matching = trees.matching(trees.constraints)
    feasible = bool(matching.any())
    return {
        "feasible": feasible,
        "fits_when_empty": feasible or bool(empty.matching(trees.constraints).any()),
        "trees": {"considered": len(forest.order.roots), "matching": int(matching.sum())},
        "funnel": list(_funnel(trees)),
        "nearest": [_blocked(trees, one) for one in _nearest(trees, focus)],
        "advice": [] if feasible else list(_advice(trees)),
    }


class _Trees:
    """Answers which trees match a request with some of its constraints."""

    def __init__(
        self,
        forest: Forest,
        request: CandidateRequest,
        constraints: list[Constraint],
        budget: Budget,
    ) -> None:
        self.forest = forest
        self.request = request
        self.constraints = constraints
        self._budget = budget
        self._known: dict[Hashable, Mask] = {}

    def matching(
        self, kept: Collection[Constraint], groups: Collection[str] | None = None
    ) -> Mask:
        """Tell for each root, in canonical order, whether its tree has a candidate."""
        self._budget.check()
        asked = reduced(self.request, kept, groups)
        if _is_bound(asked) or not asked.groups[1:]:
            return self._found(asked)
        # Where nothing binds the groups together, a tree matches if it matches each of them.
        matching: Mask = np.logical_and.reduce(
            [self._found(replace(asked, groups=(group,))) for group in asked.groups]
        )
        return matching

    def _found(self, asked: CandidateRequest) -> Mask:
        essence = essence_of(asked)
        if essence not in self._known:
            with self._budget.scope():
                problem = relate(self.forest, asked, SearchOptions(), self._budget)
                found = _matching_roots(problem)
            mask = np.isin(self.forest.order.roots, found)
            # In the set of what is known its key, too, grows with the request.
            self._budget.hold(mask.nbytes + _GROUP_BYTES * len(asked.groups))
            self._known[essence] = mask
        return self._known[essence]

    def could_match(self, kept: Collection[Constraint]) -> bool:
        """Tell whether some tree matches each group by itself; that costs little to find out."""
        loose = [one for one in kept if one.group is not None or one.reason in _ROOT]
        return bool(self.matching(loose).any())

    def of_group(self, suffix: str) -> list[Constraint]:
        """Return the constraints of one group."""
        return [one for one in self.constraints if one.group == suffix]

    @property
    def between(self) -> list[Constraint]:
        """Return the constraints on the root or on several groups."""
        return [one for one in self.constraints if one.group is None]


def _is_bound(request: CandidateRequest) -> bool:
    """Tell whether which provider serves a group may depend on who serves another one."""
    lists = [one for one in request.same_subtree if len(one.inside) > 1 or one.outside]
    return bool(request.sums_groups or request.isolated or lists or request.can_split)


def _matching_roots(problem: Problem) -> Rows:
    """Return the places of the roots of trees that have some candidate, ascending."""
    if not problem.plan.split:
        return matching_anchors(problem)
    splitter = Splitter(problem)
    found = [tree for tree in all_anchors(problem).tolist() if splitter.has_candidate(tree)]
    return problem.forest.order.roots[found]


def _funnel(trees: _Trees) -> Iterator[dict[str, Any]]:
    """Yield the steps in which constraints, one after the other, rule trees out."""
    kept: list[Constraint] = []
    known: list[str] = []
    before = trees.matching([], [])
    for one in trees.constraints:
        kept.append(one)
        if one.group is not None and one.group not in known:
            known.append(one.group)
        is_between = one.group is None and one.reason not in _ROOT
        after = trees.matching(kept, None if is_between else known)
        if after.sum() < before.sum():
            yield _step(trees, one, known, int(before.sum()), int(after.sum()))
        before = after
        if not after.any():
            return


def _step(
    trees: _Trees, one: Constraint, known: Sequence[str], before: int, after: int
) -> dict[str, Any]:
    reason, group, detail = one.reason, one.group, one.detail
    if not after and group is not None and len(known) > 1:
        alone = trees.matching(trees.of_group(group), [group])
        if alone.any():
            reason, detail = Reason.NO_COMMON_TREE, {"groups": list(known)}
            group = None
    return {
        "group": group,
        "reason": reason.value,
        "detail": dict(detail),
        "trees_before": before,
        "trees_after": after,
    }


def _nearest(trees: _Trees, focus: Focus) -> list[int]:
    """Return the indices of the trees to explain one by one."""
    order = trees.forest.order
    if focus.tree is not None:
        row = trees.forest.row_of(focus.tree)
        if row is None:
            return []
        root = order.root[order.place[row]]
        return [int(np.searchsorted(order.roots, root))]
    matching = trees.matching(trees.constraints)
    satisfied = np.zeros(len(order.roots), dtype=np.int64)
    for group in trees.request.groups:
        satisfied += trees.matching(trees.of_group(group.suffix), [group.suffix])
    candidates = np.flatnonzero(~matching)
    ranked = candidates[np.argsort(-satisfied[candidates], kind="stable")]
    return [int(one) for one in ranked[: focus.nearest]]


def _blocked(trees: _Trees, tree: int) -> dict[str, Any]:
    """Explain one tree, given its index among the roots."""
    order = trees.forest.order
    provider = trees.forest.provider(int(order.row[order.roots[tree]]))
    blocking = [] if trees.matching(trees.constraints)[tree] else list(_blocking(trees, tree))
    return {
        "root_provider": {"uuid": provider.uuid, "name": provider.name},
        "blocked_by": [
            {
                "group": one.group,
                "reason": one.reason.value,
                "detail": dict(one.detail),
                "providers": list(_providers(trees, tree, one)),
            }
            for one in blocking
        ],
    }


def _blocking(trees: _Trees, tree: int) -> Iterator[Constraint]:
    """Yield all constraints that a tree does not meet."""
    found = 0
    for group in trees.request.groups:
        for one in _blocking_group(trees, tree, group.suffix):
            found += 1
            yield one
    for one in trees.between:
        if one.reason in _ROOT and not trees.matching([one], [])[tree]:
            found += 1
            yield one
    if found:
        return
    between = [one for one in trees.between if one.reason not in _ROOT]
    without = [one for one in between if trees.matching(_but(trees, one))[tree]]
    # Where leaving out one does not help, they stand in the way together.
    yield from without or between


def _but(trees: _Trees, one: Constraint) -> list[Constraint]:
    """Return all constraints but one, and what makes no sense without it."""
    return [
        other
        for other in trees.constraints
        if other is not one
        and not (
            one.reason == Reason.NO_INVENTORY
            and other.group == one.group
            and other.reason in (Reason.AMOUNT_UNIT, Reason.CAPACITY)
            and other.value == one.value
        )
    ]


def _blocking_group(trees: _Trees, tree: int, suffix: str) -> Iterator[Constraint]:
    """Yield the constraints of a group that no provider of a tree meets, each judged alone."""
    mine = trees.of_group(suffix)
    if trees.matching(mine, [suffix])[tree]:
        return
    missing: set[Any] = set()
    found = False
    for one in mine:
        needs = [
            other
            for other in mine
            if other.reason == Reason.NO_INVENTORY
            and one.reason in (Reason.AMOUNT_UNIT, Reason.CAPACITY)
            and other.value == one.value
        ]
        if needs and one.value in missing:
            continue
        if not trees.matching([*needs, one], [suffix])[tree]:
            found = True
            if one.reason == Reason.NO_INVENTORY:
                missing.add(one.value)
            yield one
    if found:
        return
    # Each is met by some provider, but no provider meets them all: tell where it ends.
    for number, one in enumerate(mine, 1):
        if not trees.matching(mine[:number], [suffix])[tree]:
            yield one
            return


def _providers(trees: _Trees, tree: int, one: Constraint) -> Iterator[dict[str, Any]]:
    """Yield the providers of a tree that have what a constraint, or its groups, ask for."""
    forest, order = trees.forest, trees.forest.order
    wanted = _wanted(trees.request, one)
    first = int(order.roots[tree])
    shown = 0
    for place in range(first, int(order.end[first])):
        row = int(order.row[place])
        for view in forest.inventories(row):
            if view.resource_class in wanted and shown < _MOST_PROVIDERS:
                shown += 1
                provider = forest.provider(row)
                yield {
                    "uuid": provider.uuid,
                    "name": provider.name,
                    "resource_class": view.resource_class,
                    "requested": writable(wanted[view.resource_class]),
                    "free": writable(max(view.inventory.whole_capacity - view.used, 0)),
                }


def _wanted(request: CandidateRequest, one: Constraint) -> Mapping[str, int]:
    """Return the amounts that a constraint is about, by class."""
    if one.reason in (Reason.CAPACITY, Reason.AMOUNT_UNIT, Reason.NO_INVENTORY):
        amounts = {group.suffix: group.resources for group in request.groups}
        return {one.value: amounts[one.group or NO_GROUP][one.value]}
    named = one.detail.get("groups", [one.group])
    suffixes = {str(name).removeprefix("!") for name in named if name is not None}
    wanted: dict[str, int] = {}
    for group in request.groups:
        if group.suffix in suffixes or (one.reason == Reason.COMBINED_CAPACITY):
            for name, amount in group.resources.items():
                wanted[name] = wanted.get(name, 0) + amount
    return wanted


def _advice(trees: _Trees) -> Iterator[str]:
    """Yield a sentence for each single constraint without which some tree would match."""
    for one in trees.constraints:
        kept = _but(trees, one)
        count = int(trees.matching(kept).sum()) if trees.could_match(kept) else 0
        if count:
            noun = "tree" if count == 1 else "trees"
            yield f"Without {one.text} {count} {noun} would match."
