# SPDX-License-Identifier: Apache-2.0
"""The lists of all layers contain every part of a provider that the model declares."""

from dataclasses import fields

import pytest

from treeclaim.api.resources.extension.provider_batch import PART_SHAPES, ProviderEntry
from treeclaim.client.topology import entries
from treeclaim.forest.table.forest import Forest
from treeclaim.model.parts import CONDITIONS, EVERYTHING, PARTS, Part
from treeclaim.model.provider import ProviderRecord
from treeclaim.store.operations.providers.entries import WRITERS
from treeclaim.store.reading.providers.records import PARTS as LOADED

NAMES = [part.name for part in PARTS]

MEMBERS = {member.name for member in fields(ProviderRecord)}


def known_parts(names):
    """The parts with these names, in their order."""
    known = set(names)
    return [name for name in [*NAMES, CONDITIONS.name] if name in known]


LAYERS = {
    "loaded": known_parts(part.name for part in LOADED),
    "kept": known_parts(MEMBERS | set(Forest().links)),
    "written in bulk": [writer.part.name for writer in WRITERS],
    "read from a file": [name for name in entries.MEMBERS if name in NAMES],
    "sent in bulk": known_parts(ProviderEntry.model_fields),
    "shown in bulk": [part.name for part in PART_SHAPES],
}


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_has_all_parts_in_order(layer):
    read_alone = [CONDITIONS.name] if layer in ("loaded", "kept", "shown in bulk") else []
    assert LAYERS[layer] == NAMES + read_alone


def test_each_part_has_its_own_feed_bit():
    assert [part.news_part.word for part in PARTS] == NAMES
    assert len({part.news_part for part in PARTS}) == len(PARTS)
    assert (1 << len(Part)) - 1 == EVERYTHING
