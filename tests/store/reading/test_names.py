# SPDX-License-Identifier: Apache-2.0
"""The names of traits and resource classes, all of which are read whenever there is a new one."""

import pytest

from treeclaim.model.changes import CatalogueEntry
from treeclaim.store.operations.catalogue import resource_classes
from treeclaim.store.reading.providers import some_providers


@pytest.fixture
def made(monkeypatch):
    """Return the entries that were made."""
    made = []

    def make(*values):
        made.append(values[1])
        return inner(*values)

    inner = CatalogueEntry
    monkeypatch.setattr(some_providers, "CatalogueEntry", make)
    some_providers._entry.cache_clear()
    return made


def test_new_class_does_not_rebuild_other_entries(store, made):
    before = store.read(some_providers.load_catalogue)
    assert len(made) == len(before.traits) + len(before.resource_classes)
    made.clear()
    store.write(resource_classes.create, "CUSTOM_NEW")
    after = store.read(some_providers.load_catalogue)
    assert made == ["CUSTOM_NEW"]
    assert after.resource_classes.keys() - before.resource_classes.keys() == {"CUSTOM_NEW"}
    assert after.traits == before.traits


def test_renamed_class_gets_a_new_entry(store):
    store.write(resource_classes.create, "CUSTOM_OLD")
    number = store.read(some_providers.load_catalogue).resource_classes["CUSTOM_OLD"].id
    store.write(resource_classes.rename, "CUSTOM_OLD", "CUSTOM_OTHER")
    assert store.read(some_providers.load_catalogue).class_by_id[number].name == "CUSTOM_OTHER"
