# SPDX-License-Identifier: Apache-2.0
"""Arrays that are searched by bisection ascend, which all tests check."""

import numpy as np
import pytest

from treeclaim.forest.table import columns
from treeclaim.forest.table.columns import ZeroColumn, ascending, search_ascending


def test_unsorted_numbers_are_refused():
    assert columns.CHECKED
    assert ascending(np.array([1, 2, 2, 5])).tolist() == [1, 2, 2, 5]
    with pytest.raises(ValueError, match="have to ascend"):
        ascending(np.array([1, 3, 2]))


def test_binary_search_checks_its_order():
    assert search_ascending(np.array([1, 2, 2, 5]), [2, 3]).tolist() == [1, 3]
    assert search_ascending(np.array([1, 2, 2, 5]), 2, side="right") == 3
    with pytest.raises(ValueError, match="have to ascend"):
        search_ascending(np.array([1, 3, 2]), 2)


def test_zero_column_allocates_at_the_first_other_value():
    column = ZeroColumn(np.int32)
    column.make_room(100)
    column.extend([0, 0])
    column.extend(np.zeros(3, dtype=np.int64))
    early = column.values
    assert (early.tolist(), early.dtype, early.strides) == ([0] * 5, np.int32, (0,))
    with pytest.raises(ValueError, match="read-only"):
        early[0] = 1
    column.begin_writing()[1] = 7
    column.extend([0, 0])
    assert column.values.tolist() == [0, 7, 0, 0, 0, 0, 0]
    assert (early.tolist(), column.room) == ([0] * 5, 100)
    other = ZeroColumn(np.int32)
    other.extend([0])
    other.extend([0, 3])
    other.make_room(50)
    assert (other.values.tolist(), other.room) == ([0, 0, 3], 50)
