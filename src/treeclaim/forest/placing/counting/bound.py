# SPDX-License-Identifier: Apache-2.0
"""A bound of how many consumers fit, whatever the order in which they come (page 98, section 5)."""

from dataclasses import replace

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.placing.counting.closed import times_of_pairs
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.relate import relate
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.sums import GREATEST, sums_by
from treeclaim.model.request import CandidateRequest, SearchOptions


def at_most(scratch: Scratch, request: CandidateRequest, budget: Budget) -> int:
    """Return a number of consumers that no order of candidates exceeds.

    A slot is served as often as its providers together can serve it, and all that is free of a
    class is enough for so many consumers.
    """
    problem = _related(scratch, request, budget)
    part = np.zeros(len(scratch.forest.order.roots), dtype=np.int64)
    return int(_bounds(problem, part, 1)[0])


def at_most_by_tree(scratch: Scratch, request: CandidateRequest, budget: Budget) -> Rows:
    """Return the same for each root, where trees do not concern each other."""
    roots = len(scratch.forest.order.roots)
    return _bounds(_related(scratch, request, budget), np.arange(roots), roots)


def _related(scratch: Scratch, request: CandidateRequest, budget: Budget) -> Problem:
    unordered = replace(request, limit=None, order=None)
    return relate(scratch.forest, unordered, SearchOptions(), budget)


def _bounds(problem: Problem, part: Rows, parts: int) -> Rows:
    """Return a bound for each part of the Forest.

    Args:
        problem: A search.
        part: The part that each root belongs to.
        parts: How many there are.
    """
    bounds = np.full(parts, GREATEST)
    for want, relation in zip(problem.plan.slots, problem.relations, strict=True):
        if want.resources:
            times = times_of_pairs(problem.forest, relation, want)
            bounds = np.minimum(
                bounds, _sums(problem, relation.pairs.provider, times, part, parts)
            )
    relations: dict[str, list[Relation]] = {
        name: [] for want in problem.plan.slots for name in want.resources
    }
    totals: dict[str, int] = dict(problem.plan.split)
    for want, relation in zip(problem.plan.slots, problem.relations, strict=True):
        for name, amount in want.resources.items():
            relations[name].append(relation)
            totals[name] = totals.get(name, 0) + amount
    for name, relation in zip(problem.plan.split, problem.split_relations, strict=True):
        relations.setdefault(name, []).append(relation)
    for name, some in relations.items():
        positions = np.unique(np.concatenate([relation.providers for relation in some]))
        columns = problem.forest.class_inventories(name)
        _, slots = columns.indices_of(np.sort(problem.forest.order.row[positions]))
        rows = columns.row.values[slots]
        free = columns.free.values[slots]
        free_of = _sums(problem, problem.forest.order.position[rows], free, part, parts)
        # A sum that is cut off bounds nothing.
        times = np.where(free_of < GREATEST, free_of // totals[name], GREATEST)
        bounds = np.minimum(bounds, times)
    return bounds


def _sums(problem: Problem, positions: Rows, values: Rows, part: Rows, parts: int) -> Rows:
    """Return sums over the parts in which providers are, each provider counted once."""
    distinct, first = np.unique(positions, return_index=True)
    return sums_by(part[problem.forest.order.tree[distinct]], values[first], parts)
