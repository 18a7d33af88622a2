# SPDX-License-Identifier: Apache-2.0
"""Where each provider has a class of its own, work grows with what there is, not with its square."""

import numpy as np
import pytest

from tests.forest.building import (
    BEGINNING,
    calls_counted,
    forest_of,
    own_classes,
    record,
    wide_trees,
    with_own_classes,
)
from treeclaim.forest.listing import totals
from treeclaim.forest.listing.groups import By, groups_of
from treeclaim.forest.listing.selection import ProviderSelection, page_of, select_rows
from treeclaim.forest.listing.texts import INCLUDABLE, ListingTexts
from treeclaim.forest.listing.totals import amounts_of, takes_long
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.register import RowIndex
from treeclaim.model.changes import Catalogue, Changes
from treeclaim.model.request import ProviderConditions


def by_tree(forest):
    return [group["totals"] for group in amounts_by_tree(forest).totals_by_group()]


def amounts_by_tree(forest):
    rows = forest.living_rows
    return amounts_of(
        forest, rows, groups=groups_of(forest, rows, By.TREE, after="", limit=10_000)
    )


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


@pytest.mark.parametrize("together", [1, 3, 7])
def test_batch_size_does_not_change_sums(together, monkeypatch):
    forest = forest_of(wide_trees(9, 4))
    expected = by_tree(forest)
    monkeypatch.setattr(totals, "_INVENTORIES_TOGETHER", together)
    looks = []
    result = amounts_by_tree(forest).totals_by_group(lambda: looks.append(1))
    assert [group["totals"] for group in result] == expected
    assert len(looks) >= 9


def one_text(forest):
    ListingTexts().joined(forest, forest.living_rows[:1], INCLUDABLE)


def test_provider_text_does_not_read_classes_of_others():
    few, many = (calls_of(one_text, with_own_classes(count)) for count in (10, 300))
    assert many < few + 30


def test_rows_are_batched_by_number_of_classes():
    forest = forest_of(own_classes(300))
    rows = forest.living_rows[::-1]
    assert forest.with_few_groups(rows, 1024).tolist() == rows[:64].tolist()
    assert len(forest_of(wide_trees(50, 5)).with_few_groups(np.arange(300), 1024)) == 300


def test_page_reads_only_its_providers(monkeypatch):
    forest = with_own_classes(300)
    looked_at = []

    def get_each(index, keys):
        looked_at.extend(keys)
        return inner(index, keys)

    inner = RowIndex.get_each
    monkeypatch.setattr(RowIndex, "get_each", get_each)
    page = page_of(forest, forest.living_rows, 100, 10)
    assert forest.id.values[page.rows].tolist() == [*range(101, 111)]
    assert page.next_after == 110
    assert len(looked_at) <= 11


@pytest.mark.parametrize(
    "selection",
    [
        ProviderSelection(conditions=ProviderConditions(in_tree=(own_classes(7)[6].uuid,))),
        ProviderSelection(uuids=frozenset({own_classes(7)[6].uuid})),
        ProviderSelection(name="provider 7"),
    ],
    ids=["in_tree", "uuid", "name"],
)
def test_lookup_by_tree_or_name_reads_no_other_provider(selection, monkeypatch):
    forest = with_own_classes(20)
    monkeypatch.setattr(Forest, "living_rows", None)
    assert select_rows(forest, selection).tolist() == [6]


def test_removed_class_is_in_no_sum():
    forest = with_own_classes(3)
    others = [record(number) for number in range(10, 20)]
    forest.apply(Changes(BEGINNING, False, others, [2], None))
    left = [entry for entry in forest.catalogue.class_by_id.values() if entry.id != 1002]
    catalogue = Catalogue.of(forest.catalogue.trait_by_id.values(), left)
    forest.apply(Changes(BEGINNING, False, [], [], catalogue))
    assert takes_long(forest, forest.living_rows, None, None) is False
    result = amounts_of(forest, forest.living_rows).totals()
    assert [*result] == ["CUSTOM_1001", "CUSTOM_1003"]
