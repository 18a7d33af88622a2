# SPDX-License-Identifier: Apache-2.0
"""The options of a slot, and where each anchor's begin."""

import numpy as np

from treeclaim.forest.domains.domain import Domain


def test_a_slot_without_options_has_its_first_one_nowhere():
    nothing = np.zeros(0, dtype=np.int64)
    for is_local in (True, False):
        domain = Domain(np.zeros(3, dtype=np.int64), nothing, 9, is_local, {})
        anchors, positions = np.array([0, 1]), np.array([0, 4])
        assert domain.first_from(anchors, positions).tolist() == [0, 0]
