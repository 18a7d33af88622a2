# SPDX-License-Identifier: Apache-2.0
"""Each layer's list has every part of a provider that the model declares."""

from dataclasses import fields

import pytest

from treeclaim.api.resources.extension import batches, listing
from treeclaim.api.resources.extension.parts import PART_FORMS
from treeclaim.client.topology import entries
from treeclaim.forest.table.forest import Forest
from treeclaim.model.microversions import NEWEST, Feature, Version
from treeclaim.model.parts import CONDITIONS, EVERYTHING, PARTS, Part
from treeclaim.model.provider import ProviderRecord
from treeclaim.store.operations.providers.entries import WRITERS
from treeclaim.store.reading.providers.some_providers import PARTS as LOADED

NAMES = [part.name for part in PARTS]

BEFORE_TRAITS = Version(1, Feature.TRAITS - 1, is_extended=True)
"""Negotiation gives the extension to the newest microversion alone; the schemas do not know that."""

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
    "sent and shown in bulk": [part.name for part in PART_FORMS],
}


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_has_all_parts_in_order(layer):
    read_alone = [CONDITIONS.name] if layer in ("loaded", "kept") else []
    assert LAYERS[layer] == NAMES + read_alone


def test_each_part_has_its_own_feed_bit():
    assert [part.told.word for part in PARTS] == NAMES
    assert len({part.told for part in PARTS}) == len(PARTS)
    assert (1 << len(Part)) - 1 == EVERYTHING


def is_taken(schema, version, document):
    return schema.at(version).problem(document, length=0) is None


def test_earlier_version_refuses_a_part():
    assert is_taken(listing.QUERY, NEWEST, {"include": "traits,aggregates"})
    assert is_taken(listing.QUERY, BEFORE_TRAITS, {"include": "aggregates"})
    assert not is_taken(listing.QUERY, BEFORE_TRAITS, {"include": "traits"})
    assert is_taken(batches.ENTRY, BEFORE_TRAITS, {"name": "a", "aggregates": []})
    assert not is_taken(batches.ENTRY, BEFORE_TRAITS, {"name": "a", "traits": []})
