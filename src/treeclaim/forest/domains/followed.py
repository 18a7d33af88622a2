# SPDX-License-Identifier: Apache-2.0
"""Cached values that depend on amounts of some classes, recomputed only in trees written since."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import numpy as np

from treeclaim.forest.bounds.cache import SizedValue
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Trees
from treeclaim.forest.table.forest import Forest

FEW_TREES_WRITTEN = 64
"""Trees written since the last computation up to which only these are recomputed."""

_Value = TypeVar("_Value", bound=SizedValue)


@dataclass(frozen=True, slots=True, eq=False)
class _Followed(Generic[_Value]):
    """A cached value, the classes whose amounts it depends on, and the marks of their recent writes."""

    classes: Sequence[ClassInventories]
    marks: Sequence[int]
    value: _Value

    @property
    def nbytes(self) -> int:
        return self.value.nbytes

    def trees_written(self, forest: Forest) -> Trees | None:
        """Return the trees written since, by number; None if they are unknown or many."""
        trees: list[Trees] = []
        for columns, mark in zip(self.classes, self.marks, strict=True):
            indices = (
                None
                if columns.recent_writes is None
                else columns.recent_writes.entries_since(mark)
            )
            if indices is None:
                return None
            trees.append(forest.order.tree[columns.row.values[np.array(indices, dtype=np.int64)]])
        written_trees = np.unique(np.concatenate(trees)) if trees else np.arange(0)
        return written_trees if len(written_trees) <= FEW_TREES_WRITTEN else None


def follow(
    forest: Forest,
    key: Hashable,
    classes: Iterable[ClassInventories],
    make: Callable[[], _Value],
    remake: Callable[[_Value, Trees], _Value],
) -> _Value:
    """Return the present value, which must not be changed.

    `make` computes the value; `remake` updates an earlier one, given the numbers of the trees written
    since. Nothing is cached for copies of classes.
    """
    columns = list(classes)
    marks = [each.recent_writes.mark for each in columns if each.recent_writes is not None]
    if len(marks) < len(columns):
        return make()
    cached = cast("_Followed[_Value] | None", forest.cache.find(key))
    if cached is None or cached.classes != columns:
        value = make()
    elif cached.marks == marks:
        return cached.value
    else:
        trees = cached.trees_written(forest)
        value = make() if trees is None else remake(cached.value, trees)
    forest.cache.keep(key, _Followed(columns, marks, value), replaces=True)
    return value
