# SPDX-License-Identifier: Apache-2.0
"""Concurrent claims through one store have separate outcomes, and overbook nothing."""

import uuid
from concurrent.futures import ThreadPoolExecutor

from tests.store.hosts import create_host, make_claim
from treeclaim.model.claim import ConsumerClaim, Omission
from treeclaim.model.errors import (
    InvalidValueError,
    ResourceClassNotFoundError,
    TreeclaimError,
)
from treeclaim.replica import Replica

LONG = 60.0


def claim(consumer, amounts, generation=Omission.OMITTED, project="project"):
    return make_claim(consumer, amounts, generation, project_id=project)


def used_of(store, host):
    with Replica(store).borrow_forest() as forest:
        (stock,) = forest.inventories(forest.row_of(host))
        return stock.used


def at_once(*actions):
    """Run actions at the same time; return the exception of each."""
    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.exception(LONG) for future in [pool.submit(action) for action in actions]]


def test_invalid_claims_do_not_fail_other_claims(store):
    """Such claims name missing objects, or are refused by the database."""
    host = create_host(store, 1000)

    def good():
        store.replace_allocations([claim(str(uuid.uuid4()), {host: 1}, None)])

    def too_long():
        invalid = claim(str(uuid.uuid4()), {host: 1}, None, project="p" * 300)
        store.replace_allocations([invalid])

    def huge():
        store.replace_allocations([claim(str(uuid.uuid4()), {host: 1 << 70}, None)])

    def classless():
        invalid = ConsumerClaim(str(uuid.uuid4()), {host: {"CUSTOM_NO": 1}}, "p", "u", None)
        store.replace_allocations([invalid])

    good()
    for _ in range(5):
        errors = at_once(good, too_long, good, huge, good, classless, good, good)
        for number in (0, 2, 4, 6, 7):
            assert errors[number] is None, errors[number]
        if store.engine.dialect.name != "sqlite":
            assert isinstance(errors[1], InvalidValueError)
        assert isinstance(errors[3], TreeclaimError)
        assert isinstance(errors[5], ResourceClassNotFoundError)
    assert used_of(store, host) in {26, 31}
