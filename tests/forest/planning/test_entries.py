# SPDX-License-Identifier: Apache-2.0
"""Wanted states of providers in a Forest."""

import json

from tests.forest.building import forest_of, provider_uuid, record
from treeclaim.forest.bounds.budget import UNBOUNDED
from treeclaim.forest.planning.entries import apply_entries
from treeclaim.model.extension.batches.batch import BatchEntry


def test_entry_replaces_its_attributes_and_keeps_others():
    forest = forest_of(
        [record(1, attributes={"ecc": 1, "gib": 80}), record(2, attributes={"gib": 40})]
    )
    entries = [
        BatchEntry(provider_uuid(1), None, values={"attributes": {"ecc": True}}),
        BatchEntry(provider_uuid(2), "renamed"),
        BatchEntry(provider_uuid(3), "new", values={"attributes": {"ecc": "true"}}),
        BatchEntry(provider_uuid(4), "bare"),
    ]
    apply_entries(forest, entries, UNBOUNDED)
    found = [forest.attributes_of(forest.row_of(provider_uuid(number))) for number in range(1, 5)]
    assert json.dumps(found) == json.dumps([{"ecc": True}, {"gib": 40}, {"ecc": "true"}, {}])
