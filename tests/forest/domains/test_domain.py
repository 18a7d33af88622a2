# SPDX-License-Identifier: Apache-2.0
"""The options of a slot, and those of them in a subtree."""

import numpy as np
import pytest

from tests.forest.building import BEGINNING, forest_of, record
from treeclaim.forest.domains.domain import Domain
from treeclaim.model.changes import Changes


@pytest.mark.parametrize("is_local", [True, False])
def test_slot_without_options_has_none_below_any_provider(is_local):
    nothing = np.zeros(0, dtype=np.int64)
    order = forest_of([record(1), record(2)]).order
    domain = Domain(np.zeros(3, dtype=np.int64), nothing, order, is_local, {})
    first, end = domain.below(np.array([0, 1]), np.array([0, 1]), are_own=is_local)
    assert first.tolist() == end.tolist()


@pytest.mark.parametrize("many", [1, 50])
@pytest.mark.parametrize("is_local", [True, False])
def test_options_below_a_provider_are_found_wherever_its_tree_is_written(is_local, many):
    records = [
        record(root + number, root if number else None, root, {"VCPU": 1})
        for root in (1, 4, 7)
        for number in range(3)
    ]
    forest = forest_of(records)
    # The first tree is written again, behind the others.
    forest.apply(Changes(BEGINNING, False, [record(10, 2, 1, {"VCPU": 1})], [], None))
    order = forest.order
    options = np.concatenate([np.arange(row, order.end[row]) for row in order.roots.tolist()])
    domain = Domain(np.array([0, 4, 7, 10]), options, order, is_local, {})
    heads = np.repeat(options, many)
    first, end = domain.below(order.tree[heads], heads, are_own=is_local)
    below = [options[one:other].tolist() for one, other in zip(first, end, strict=True)]
    assert below == [list(range(head, order.end[head])) for head in heads.tolist()]
    first, end = domain.below((order.tree[heads] + 1) % 3, heads, are_own=False)
    assert first.tolist() == end.tolist()
