# SPDX-License-Identifier: Apache-2.0
"""What is searched by halves ascends: all tests look at that."""

import numpy as np
import pytest

from treeclaim.forest.table import columns
from treeclaim.forest.table.columns import ascending


def test_numbers_that_do_not_ascend_are_refused():
    assert columns.CHECKED
    assert ascending(np.array([1, 2, 2, 5])).tolist() == [1, 2, 2, 5]
    with pytest.raises(ValueError, match="have to ascend"):
        ascending(np.array([1, 3, 2]))
