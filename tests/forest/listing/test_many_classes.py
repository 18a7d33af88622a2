# SPDX-License-Identifier: Apache-2.0
"""Where each provider has a class of its own, work grows with what there is, not with its square."""

from tests.forest.building import (
    calls_counted,
    with_own_classes,
)
from treeclaim.forest.listing.groups import By, groups_of
from treeclaim.forest.listing.totals import InventoryAmounts
from treeclaim.forest.table.held import HeldColumns

NOTHING = HeldColumns.of(())


def by_tree(forest):
    rows = forest.living_rows
    groups = groups_of(forest, rows, By.TREE, after="", limit=10_000)
    amounts = InventoryAmounts(forest, rows, NOTHING)
    return [group["totals"] for group in amounts.totals_by_group(groups)]


def calls_of(function, forest):
    with calls_counted() as count:
        function(forest)
    return count[0]


def test_sums_of_trees_grow_linearly_with_classes():
    few, many = (calls_of(by_tree, with_own_classes(count)) for count in (100, 200))
    assert many < 2.2 * few
