# SPDX-License-Identifier: Apache-2.0
"""Values of options, and the greatest and least of them under each root."""

import numpy as np

from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.totals import Floats


def greatest(relation: Relation, values: Floats) -> Floats:
    """Return the greatest value of the options under each root; 0 where there is none.

    Args:
        relation: Who may take a slot.
        values: One for each of its pairs, those that are not meant included.
    """
    if relation.fits is not None:
        values = np.where(relation.fits, values, -np.inf)
    starts = relation.pairs.starts
    greatest = np.zeros(len(starts) - 1)
    if len(values):
        has = relation.pairs.reached
        greatest[has] = np.maximum.reduceat(values, starts[:-1][has])
        greatest[np.isneginf(greatest)] = 0
    return greatest


def least(relation: Relation, values: Floats) -> Floats:
    """Return the least value of the options under each root; 0 where there is none."""
    return -greatest(relation, -values)
