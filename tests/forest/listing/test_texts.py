# SPDX-License-Identifier: Apache-2.0
"""Prepared texts of providers: quick, true after every change, and of a bounded size."""

import random

import orjson

from tests.forest.building import TRAITS, forest_of, provider_uuid, record
from treeclaim.forest.listing import texts
from treeclaim.forest.listing.selection import ProviderSelection, page_of, select_rows
from treeclaim.forest.listing.texts import INCLUDABLE, ListingTexts
from treeclaim.model.extension.conditions import shown_by_key


def hosts(count, seed=0):
    choice = random.Random(seed)
    return [
        record(
            number,
            inventories={"VCPU": (64, choice.randrange(64)), "MEMORY_MB": 4096, "DISK_GB": 100},
            traits=choice.sample(TRAITS, 2),
            aggregates=[provider_uuid(10**6 + number % 7)],
            generation=choice.randrange(100),
            attributes={"serial": f"s{number}", "ecc": choice.choice([1, True])}
            if number % 3
            else {},
        )
        for number in range(1, count + 1)
    ]


def shown(forest, row):
    """A row as its own URLs show it."""
    provider = forest.provider(row)
    inventories = forest.inventories(row)
    return {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "parent_provider_uuid": provider.parent_uuid,
        "root_provider_uuid": provider.root_uuid,
        "inventories": {
            inventory.resource_class: inventory.inventory.amounts for inventory in inventories
        },
        "usages": {inventory.resource_class: inventory.used for inventory in inventories},
        "traits": forest.traits(row),
        "aggregates": forest.aggregates(row),
        "attributes": forest.attributes_of(row),
        "conditions": shown_by_key(forest.conditions(row)),
    }


def listed(kept, forest):
    rows = page_of(forest, select_rows(forest, ProviderSelection()), 0, 10_000).rows
    written = orjson.loads(b"[" + kept.joined(forest, rows, INCLUDABLE) + b"]")
    return written, [shown(forest, row) for row in rows.tolist()]


def test_cached_texts_are_evicted_within_the_limit(monkeypatch):
    monkeypatch.setattr(texts, "_MOST_BYTES", 20_000)
    forest, kept = forest_of(hosts(300)), ListingTexts()
    for _ in range(3):
        body, expected = listed(kept, forest)
        assert body == expected
    kept = ListingTexts()
    for first in range(0, 300, 10):
        rows = select_rows(forest, ProviderSelection())[first : first + 10]
        kept.joined(forest, rows, INCLUDABLE)
        assert kept._bytes < 20_000 + 10 * 1_000
