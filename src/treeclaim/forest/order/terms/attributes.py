# SPDX-License-Identifier: Apache-2.0
"""`most` and `least`: how great an attribute is beside those of all providers (page 102, section 1)."""

import numpy as np

from treeclaim.forest.order.totals import Floats
from treeclaim.forest.table.forest import Forest
from treeclaim.model.attributes import AttributeKind


def worth_of_attribute(forest: Forest, name: str, *, is_most: bool) -> Floats:
    """Return what providers are worth by an attribute, from 0 to 1, by position.

    Args:
        forest: Where they are.
        name: Of the attribute; whoever has no integer is worth 0.
        is_most: Whether a greater one is worth more, or less.
    """
    worth = np.zeros(len(forest.order.row))
    column, ends = forest.attributes.column(name), forest.range_of_attribute(name)
    if column is None or ends is None:
        return worth
    least, greatest = ends
    kinds, values = column.at(forest.order.row)
    is_integer = kinds == AttributeKind.INTEGER
    if least == greatest:
        worth[is_integer] = 1.0
        return worth
    distance = values[is_integer] - least if is_most else greatest - values[is_integer]
    worth[is_integer] = distance / (greatest - least)
    return worth
