# SPDX-License-Identifier: Apache-2.0
"""Many claim at once, from several processes; nothing is ever overbooked, nothing is lost."""

import random
import uuid

import pytest

from tests.fresh_processes import FRESH
from tests.store.hosts import create_host, make_claim
from treeclaim.model.errors import CapacityExceededError
from treeclaim.model.inventory import Inventory
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.allocations import claims as allocations
from treeclaim.store.operations.allocations.requests import ClaimRequest

WORKERS = 4
ROUNDS = 20


def new_provider(store, name, total):
    return create_host(store, {"DISK_GB": Inventory(total=total)}, name=name)


def claim(store, consumer, amounts, generation):
    request = ClaimRequest([make_claim(consumer, amounts, generation, "DISK_GB")])
    store.write(allocations.write_request, request)


def claim_at_random(url, attempts, seed, uuids, answers):
    """Claim, shrink and give back; report what this worker holds in the end."""
    chance = random.Random(seed)
    store = Store(DatabaseSettings(url), attempts=attempts)
    held = {}
    refused = 0
    for _ in range(ROUNDS):
        if held and chance.random() < 0.4:
            consumer = chance.choice(sorted(held))
            if chance.random() < 0.5:
                store.write(allocations.delete, consumer)
                del held[consumer]
                continue
            amounts = dict.fromkeys(held[consumer][0], 1)
            generation = held[consumer][1]
        else:
            consumer, generation = str(uuid.uuid4()), None
            chosen = chance.sample(uuids, chance.randint(1, 2))
            amounts = {provider: chance.randint(1, 4) for provider in chosen}
        try:
            claim(store, consumer, amounts, generation)
        except CapacityExceededError:
            refused += 1
        else:
            held[consumer] = (amounts, (generation or 0) + 1)
    answers.put(([amounts for amounts, _ in held.values()], refused))
    store.close()


@pytest.mark.slow
def test_concurrent_claims_queue_up_and_never_overbook(store, database_url):
    totals = {new_provider(store, f"pool {number}", 12 + number): 12 + number for number in (0, 1)}
    answers = FRESH.Queue()
    workers = [
        FRESH.Process(
            target=claim_at_random,
            args=(database_url, store._attempts, seed, sorted(totals), answers),
        )
        for seed in range(WORKERS)
    ]
    for one in workers:
        one.start()
    replica = Replica(store)
    while any(worker.is_alive() for worker in workers) and answers.qsize() < WORKERS:
        with replica.current() as forest:
            for uuid_, total in totals.items():
                (stock,) = forest.inventories(forest.row_of(uuid_))
                assert stock.used <= total
    results = [answers.get(timeout=120) for _ in workers]
    for one in workers:
        one.join()
        assert one.exitcode == 0
    with replica.current() as forest:
        for uuid_ in totals:
            (stock,) = forest.inventories(forest.row_of(uuid_))
            promised = sum(amounts.get(uuid_, 0) for held, _ in results for amounts in held)
            assert stock.used == promised
    assert sum(refused for _, refused in results) > 0
