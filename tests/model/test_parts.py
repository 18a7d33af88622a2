# SPDX-License-Identifier: Apache-2.0
"""Each layer's list has every part of a provider that the model declares."""

import pytest

from treeclaim.api.resources.extension.parts import PART_FORMS
from treeclaim.client.topology.entries import EntryReader
from treeclaim.forest.table.forest import Forest
from treeclaim.model.parts import EVERYTHING, INVENTORIES, PARTS, Part
from treeclaim.store.operations.batches.parts import WRITERS
from treeclaim.store.reading.parts import FIRST_KIND, LINKED

NAMES = [part.name for part in PARTS]

LAYERS = {
    # Inventories have amounts and usage beside them, and are loaded in their own way.
    "loaded": [INVENTORIES.name, *(linked.part.name for linked in LINKED)],
    "kept": [INVENTORIES.name, *Forest().links],
    "written in bulk": [writer.part.name for writer in WRITERS],
    "read from a file": list(EntryReader([]).parts),
    "sent and shown in bulk": [part.name for part in PART_FORMS],
}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_has_all_parts_in_their_order(layer):
    assert LAYERS[layer] == NAMES


def test_the_feed_tells_of_each_part_by_a_bit_of_its_own():
    assert [part.told.word for part in PARTS] == NAMES
    assert (1 << len(Part)) - 1 == EVERYTHING


def test_the_rows_of_each_part_are_told_apart():
    assert [linked.kind for linked in LINKED] == list(range(FIRST_KIND, FIRST_KIND + len(LINKED)))
