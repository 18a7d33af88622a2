# SPDX-License-Identifier: Apache-2.0
"""Numbers that depend on the amounts of some classes, worked out again only in the trees written since."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from treeclaim.forest.bounds.cache import ByteCache, SizedValue
from treeclaim.forest.table.class_inventories import (
    ClassInventories,
    Mark,
    marks_of,
    written_since,
)
from treeclaim.forest.table.columns import Trees
from treeclaim.forest.table.forest import Forest

_Value = TypeVar("_Value", bound=SizedValue)


@dataclass(frozen=True, slots=True, eq=False)
class _Followed(Generic[_Value]):
    """A value at a moment."""

    marks: Sequence[Mark]
    value: _Value

    @property
    def nbytes(self) -> int:
        """Return the bytes of the value."""
        return self.value.nbytes


def follow(
    forest: Forest,
    key: Hashable,
    classes: Iterable[ClassInventories],
    make: Callable[[], _Value],
    remake: Callable[[_Value, Trees], _Value],
    *,
    cache: ByteCache | None = None,
) -> _Value:
    """Return a value as things are now, not to be changed.

    Args:
        forest: The Forest. Nothing is cached for classes that have amounts of their own.
        key: The key of the value.
        classes: The classes on whose amounts it depends.
        make: Makes the value.
        remake: Makes the value from an earlier one and the numbers of the trees written since.
        cache: Where it is cached; None for the Forest's cache of what depends on the shape.
    """
    cache = forest.cache if cache is None else cache
    marks = marks_of(classes)
    if any(mark.columns.written is None for mark in marks):
        return make()
    cached = cast("_Followed[_Value] | None", cache.find(key))
    if cached is not None and cached.marks == marks:
        return cached.value
    trees = None
    if cached is not None and [each.columns for each in cached.marks] == [
        each.columns for each in marks
    ]:
        trees = written_since(forest.order, cached.marks)
    value = make() if cached is None or trees is None else remake(cached.value, trees)
    cache.keep(key, _Followed(marks, value), replaces=True)
    return value
