# SPDX-License-Identifier: Apache-2.0
"""Sums of whole numbers that end at the greatest number that is shown, and never turn over.

A capacity may be nearly as great as a 64-bit number, so sums of two of them need more bits. All
sums of amounts and of counts are made here, in floating point: of numbers that are at least 0, a sum
is exact as long as it is below 2**53, and one that is not never comes out below that.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import Integers

GREATEST = 2**53 - 1
"""Greatest number that is shown (contract page 98, section 1): what every reader of JSON reads exactly.
"""


def sums_by(part: Integers, values: npt.NDArray[Any], parts: int) -> Integers:
    """Return the sum of the values of each part, `GREATEST` for all sums beyond.

    Args:
        part: The number of the part that each value belongs to.
        values: Numbers; what is less than 0 counts as 0.
        parts: How many parts there are.
    """
    weights = np.clip(values.astype(np.float64), 0, float(GREATEST))
    sums = np.bincount(part, weights=weights, minlength=parts)
    whole: Integers = np.minimum(sums, float(GREATEST)).astype(np.int64)
    return whole


def sum_of(values: npt.NDArray[Any]) -> int:
    """Return the sum of some numbers in the same way."""
    return int(sums_by(np.zeros(len(values), dtype=np.int64), values, 1)[0])


def shown(count: int) -> int:
    """Return a number as it may be shown."""
    return min(count, GREATEST)
