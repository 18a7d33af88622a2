# SPDX-License-Identifier: Apache-2.0
"""Trees that are alike to a request: as many consumers fit into each of them."""

from collections.abc import Iterator

import numpy as np

from treeclaim.forest.domains.filters import with_any_trait_by_position
from treeclaim.forest.order.relatives import relatives_of
from treeclaim.forest.order.totals import class_positions
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Trees
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Changes, Cursor


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


def _columns(problem: Problem) -> Iterator[Integers]:
    """Yield properties of providers by position: shape, options, amounts, traits."""
    forest = problem.forest
    order = forest.order
    numbers = np.arange(len(order.row))
    yield order.end - numbers
    yield numbers - relatives_of(forest).parent
    for relation in problem.relations:
        yield _by_position(numbers, relation.providers, np.ones(1, dtype=np.int64))
    names = {name for slot in problem.plan.slots for name in slot.resources}
    for name in sorted(names):
        columns = forest.class_inventories(name)
        indices, positions, _ = class_positions(forest, name)
        for column in (columns.free, columns.max_unit, columns.used):
            yield _by_position(numbers, positions, column.values[indices])
    for has in problem.rules.required:
        yield has.astype(np.int64)
    if problem.plan.request.order is not None:
        for preference in problem.plan.request.order.preferences:
            yield with_any_trait_by_position(forest, (preference.trait,)).astype(np.int64)


def _by_position(numbers: Integers, positions: Integers, values: Integers) -> Integers:
    found = np.zeros(len(numbers), dtype=np.int64)
    found[positions] = values
    return found


def alone(forest: Forest, trees: Trees) -> Forest:
    """Return a Forest of some trees alone, in the same order, with what is used of them."""
    order = forest.order
    records = [
        forest.record(int(row))
        for root in order.roots[trees].tolist()
        for row in order.row[root : int(order.end[root])]
    ]
    made = Forest()
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
