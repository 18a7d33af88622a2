# SPDX-License-Identifier: Apache-2.0
"""Cached texts of providers stay within their bytes."""

import random

from tests.forest.building import TRAITS, forest_of, provider_uuid, record
from treeclaim.forest.listing import texts
from treeclaim.forest.listing.selection import select_rows
from treeclaim.forest.listing.texts import INCLUDABLE, ListingTexts
from treeclaim.model.request import ProviderQuery


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


def test_cached_texts_are_evicted_within_the_limit(monkeypatch):
    monkeypatch.setattr(texts, "_MOST_BYTES", 20_000)
    forest, cached = forest_of(hosts(300)), ListingTexts()
    for first in range(0, 300, 10):
        rows = select_rows(forest, ProviderQuery())[first : first + 10]
        cached.joined(forest, rows, INCLUDABLE)
        assert cached.nbytes < 20_000 + 10 * 1_000
