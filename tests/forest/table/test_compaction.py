# SPDX-License-Identifier: Apache-2.0
"""The table is compacted in short steps, without any effect on answers."""

import os
from dataclasses import replace

import numpy as np
import pytest

from tests.forest.building import (
    CATALOGUE,
    CLASSES,
    body_of,
    forest_of,
    make_changes,
    record,
    wide_trees,
    with_links,
)
from tests.properties.forest_adapter import lowered
from treeclaim.forest.domains import relation
from treeclaim.forest.listing.texts import INCLUDABLE, ListingTexts
from treeclaim.forest.table import texts
from treeclaim.forest.table.columns import Column
from treeclaim.model.changes import Catalogue, CatalogueEntry, UsageChange
from treeclaim.model.request import CandidateRequest, RequestGroup

DEVICES = CandidateRequest((RequestGroup("_A", {"CUSTOM_DEVICE": 1}),))


def apply_changes(forest, *records, removed=(), catalogue=None):
    forest.apply(make_changes(*records, removed=list(removed), catalogue=catalogue))


def with_trait(forest, name, trait_id):
    return with_links(forest.record(forest.row_of_name(name)), traits=(trait_id,))


@pytest.mark.slow
def test_compaction_finishes_under_repeated_writes_to_a_large_tree():
    thresholds = {
        "table.compaction.FEWEST_DEAD_ROWS": 30,
        "table.forest.ROWS_COPIED_TOGETHER": 4,
        "table.provider_table.ROWS_COPIED_TOGETHER": 4,
    }
    with lowered(thresholds):
        forest = forest_of([*wide_trees(20, 2), *wide_trees(1, 100, first=1000)])
        sizes = []
        for number in range(400):
            apply_changes(forest, with_trait(forest, "provider 1050", 3 + number % 2))
            sizes.append(forest.row_count)
        assert max(sizes[200:]) <= max(sizes[:200]) < 50 * 161


def test_texts_show_a_claim_between_the_copies_of_a_root_and_of_its_child():
    thresholds = {
        "table.compaction.FEWEST_DEAD_ROWS": 1,
        "table.forest.ROWS_COPIED_TOGETHER": 1,
        "table.provider_table.ROWS_COPIED_TOGETHER": 1,
    }
    device = CLASSES.index("CUSTOM_DEVICE")
    with lowered(thresholds):
        for rewritten in range(1, 8):
            forest = forest_of([*wide_trees(1, 6, units=9), *wide_trees(1, 2, first=100)])
            used = 0
            for number in range(30):
                # A rewritten tree leaves dead rows, so that a compaction begins; each change copies a row.
                body_of(forest, DEVICES)
                apply_changes(forest, with_trait(forest, "provider 101", 3 + number % 2))
                for _ in range(rewritten):
                    forest.run_compaction_step()
                used = 1 - used
                change = UsageChange({device: 2 * used - 1}, 0, 0, 0.0)
                forest.apply(make_changes(usage={7: change}))
                for _ in range(12):
                    forest.run_compaction_step()
                assert body_of(forest, DEVICES) == body_of(forest_of(forest.records()), DEVICES)


def test_new_trait_keeps_cached_texts_and_renamed_trait_clears_them(monkeypatch):
    forest, listing = forest_of(wide_trees(5, 2)), ListingTexts()
    apply_changes(forest, with_trait(forest, "provider 1", 3))
    before = body_of(forest, DEVICES)
    rows = forest.living_rows
    listing.joined(forest, rows, INCLUDABLE)
    traits = list(CATALOGUE.trait_by_id.values())
    classes = CATALOGUE.class_by_id.values()
    extended = Catalogue.of([*traits, CatalogueEntry(90, "CUSTOM_NEW", 0.0)], classes)
    with monkeypatch.context() as patch:
        patch.setattr(relation, "_make_pairs", None)
        apply_changes(forest, catalogue=extended)
        assert body_of(forest, DEVICES) == before
        assert not len(listing.stale(forest, rows))
    traits[2] = replace(traits[2], name="CUSTOM_RENAMED")
    apply_changes(forest, catalogue=Catalogue.of(traits, classes))
    assert b"CUSTOM_RENAMED" in body_of(forest, DEVICES)
    assert b"CUSTOM_RENAMED" in listing.joined(forest, rows, INCLUDABLE)


def test_reassigned_trait_id_shows_the_new_name():
    forest, listing = forest_of(wide_trees(2, 1)), ListingTexts()
    apply_changes(forest, with_trait(forest, "provider 1", 3))
    listing.joined(forest, forest.living_rows, INCLUDABLE)
    apply_changes(forest, with_trait(forest, "provider 1", 4))
    traits = [*CATALOGUE.trait_by_id.values()]
    traits[2] = replace(traits[2], name="CUSTOM_OTHER")
    apply_changes(forest, catalogue=Catalogue.of(traits, CATALOGUE.class_by_id.values()))
    apply_changes(forest, with_trait(forest, "provider 1", 3))
    assert b"CUSTOM_OTHER" in listing.joined(forest, forest.living_rows, INCLUDABLE)


def test_two_providers_swap_names():
    forest = forest_of(wide_trees(2, 0))
    first, second = forest.records()
    apply_changes(forest, replace(first, name=second.name), replace(second, name=first.name))
    assert forest.row_of_name(second.name) == forest.row_of(first.uuid)
    assert forest.row_of_name(first.name) == forest.row_of(second.uuid)


def test_forked_process_does_not_share_columns():
    column = Column(np.int64)
    column.extend(np.zeros(10**6, dtype=np.int64))
    child = os.fork()
    if not child:
        column.values[0] = 1
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert column.values[0] == 0


@pytest.mark.parametrize("bound", ["_MOST_TREE_BYTES", "_LEAST_ROW_BYTES"])
def test_text_over_the_cache_limit_is_rewritten_each_time(bound, monkeypatch):
    records = [*wide_trees(1, 4), *wide_trees(1, 0, first=1000)]
    expected = body_of(forest_of(records), DEVICES)
    monkeypatch.setattr(texts, bound, 10)
    monkeypatch.setattr(texts, "_MOST_BYTES_FOR_A_ROW", 0)
    forest = forest_of(records)
    for _ in range(2):
        assert body_of(forest, DEVICES) == expected
    row_bytes, tree_bytes = forest.summaries.providers.nbytes, forest.summaries.trees.nbytes
    assert min(row_bytes, tree_bytes) == 0 < max(row_bytes, tree_bytes)


def test_deleted_providers_leave_no_memory():
    forest = forest_of(wide_trees(10, 0))
    for number in range(100, 400):
        apply_changes(forest, record(number, inventories={"VCPU": 8}), removed=[number - 1])
    assert forest.handle.values[forest.living_rows].max() < 12
    assert len(forest.holdings.names) <= 12
