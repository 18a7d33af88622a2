# SPDX-License-Identifier: Apache-2.0
"""Where each provider has a class of its own, work grows with what there is, not with its square."""

from tests.forest.building import (
    calls_counted,
    news,
    record,
    with_own_classes,
)
from treeclaim.forest.listing.groups import By, groups_of
from treeclaim.forest.listing.totals import InventoryAmounts
from treeclaim.forest.table.held import HeldColumns
from treeclaim.model.changes import Catalogue

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


def test_each_tree_has_sums_of_its_own_class_only():
    result = by_tree(with_own_classes(20))
    assert [list(sums) for sums in result] == [[f"CUSTOM_{1000 + n}"] for n in range(1, 21)]
    assert {sums["total"] for one in result for sums in one.values()} == {8}


def test_removed_class_is_in_no_sum():
    forest = with_own_classes(3)
    others = [record(number) for number in range(10, 20)]
    forest.apply(news(*others, removed=[2]))
    left = [entry for entry in forest.catalogue.class_by_id.values() if entry.id != 1002]
    catalogue = Catalogue.of(forest.catalogue.trait_by_id.values(), left)
    forest.apply(news(catalogue=catalogue))
    result = InventoryAmounts(forest, forest.living_rows, NOTHING).totals()
    assert [*result] == ["CUSTOM_1001", "CUSTOM_1003"]
