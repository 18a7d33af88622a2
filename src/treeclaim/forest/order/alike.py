# SPDX-License-Identifier: Apache-2.0
"""Trees that are alike to a request: as many consumers fit into each of them."""

from collections.abc import Iterator, Sequence

import numpy as np

from treeclaim.forest.domains.consumed import are_any, classes_with_consumed
from treeclaim.forest.domains.filters import (
    likenesses_of_values,
    values_by_position,
    with_any_trait_by_position,
)
from treeclaim.forest.order.relatives import relatives_of
from treeclaim.forest.order.totals import class_positions
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Trees
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Changes, Cursor
from treeclaim.model.extension.order import TermName


def likenesses(problem: Problem, trees: Trees) -> Iterator[bytes]:
    """Yield for each of some trees all that the candidates in it depend on.

    Args:
        problem: A request that splits nothing, where no tree concerns another one.
        trees: Numbers of trees in which it has candidates.
    """
    order = problem.forest.order
    matrix = np.ascontiguousarray(np.stack(list(_columns(problem)), axis=1))
    for root in order.roots[trees].tolist():
        yield matrix[root : int(order.end[root])].tobytes()


def kinds_of_trees(problems: Sequence[Problem], trees: Trees) -> Integers:
    """Return a number for each of some trees, the same for those that no problem can tell apart.

    Args:
        problems: Requests related to one Forest, where no tree concerns another one.
        trees: Numbers of trees.
    """
    forest = problems[0].forest
    order = forest.order
    numbers = np.arange(len(order.row))
    columns = [order.end - numbers, numbers - relatives_of(forest).parent]
    ones = np.ones(1, dtype=np.int64)
    some = [problem.relations + problem.split_relations for problem in problems]
    pairs = {id(relation.pairs): relation.pairs for relations in some for relation in relations}
    columns += [_by_position(numbers, each.provider, ones) for each in pairs.values()]
    columns += [has.astype(np.int64) for problem in problems for has in problem.rules.required]
    columns += [
        likenesses_of_values(forest, name) for problem in problems for name in problem.rules.values
    ]
    for problem in problems:
        if problem.allowed is not None:
            columns.append(_by_position(numbers, order.roots, problem.allowed.astype(np.int64)))
    names = classes_with_consumed(
        forest, {name for problem in problems for name in problem.plan.request.classes}
    )
    for name in sorted(names):
        inventories = forest.class_inventories(name)
        indices, positions, _ = class_positions(forest, name)
        limits = (inventories.min_unit, inventories.max_unit, inventories.step_size)
        consuming = (inventories.pattern,) if are_any(forest) else ()
        for column in (inventories.free, inventories.used, *consuming, *limits):
            columns.append(_by_position(numbers, positions, column.values[indices]))
    matrix = np.ascontiguousarray(np.stack(columns, axis=1))
    known: dict[bytes, int] = {}
    kinds = []
    for root in order.roots[trees].tolist():
        likeness = matrix[root : int(order.end[root])].tobytes()
        kinds.append(known.setdefault(likeness, len(known)))
    return np.array(kinds, dtype=np.int64)


def _columns(problem: Problem) -> Iterator[Integers]:
    """Yield properties of providers by position: shape, options, amounts, traits."""
    forest = problem.forest
    order = forest.order
    numbers = np.arange(len(order.row))
    yield order.end - numbers
    yield numbers - relatives_of(forest).parent
    for relation in problem.relations:
        yield _by_position(numbers, relation.providers, np.ones(1, dtype=np.int64))
    names = classes_with_consumed(
        forest, {name for slot in problem.plan.slots for name in slot.resources}
    )
    for name in sorted(names):
        columns = forest.class_inventories(name)
        indices, positions, _ = class_positions(forest, name)
        consuming = (columns.pattern,) if are_any(forest) else ()
        for column in (columns.free, columns.max_unit, columns.used, *consuming):
            yield _by_position(numbers, positions, column.values[indices])
    for has in problem.rules.required:
        yield has.astype(np.int64)
    for name in problem.rules.values:
        yield likenesses_of_values(forest, name)
    if problem.plan.request.order is not None:
        for preference in problem.plan.request.order.preferences:
            yield with_any_trait_by_position(forest, (preference.trait,)).astype(np.int64)
        for term in problem.plan.request.order.terms:
            if term.name in (TermName.MOST, TermName.LEAST):
                yield values_by_position(forest, term.arguments[0])


def _by_position(numbers: Integers, positions: Integers, values: Integers) -> Integers:
    at_positions = np.zeros(len(numbers), dtype=np.int64)
    at_positions[positions] = values
    return at_positions


def alone(forest: Forest, trees: Trees) -> Forest:
    """Return a Forest of only some trees, in the same order, with their usage."""
    order = forest.order
    records = [
        forest.record(int(row))
        for root in order.roots[trees].tolist()
        for row in order.row[root : int(order.end[root])]
    ]
    made = Forest()
    made.whole = forest if forest.whole is None else forest.whole
    made.overlooks_conditions = forest.overlooks_conditions
    made.apply(
        Changes(
            Cursor({}, None, frozenset()),
            complete=True,
            records=records,
            removed=(),
            catalogue=forest.catalogue,
        )
    )
    return made
