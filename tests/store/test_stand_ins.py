# SPDX-License-Identifier: Apache-2.0
"""The store on stand-ins for other databases: claims, holds, conditions and the feed, as on all others.

Tests of other files run here on databases of their own (`tests/stand_ins.py`). Ids jump and go back on
each of PostgreSQL's kind: nothing may rely on their order.
"""

from contextlib import closing
from functools import partial

import pytest

from tests import stand_ins
from tests.api.resources.extension.clouds import EXTENDED
from tests.service import client_of, start_on
from tests.stand_ins import database_of
from tests.store.feed.test_readers_miss_nothing import (
    test_a_stream_born_after_another_one_was_pruned_is_not_taken_for_it,
    test_a_stream_that_is_born_and_pruned_between_two_reads_is_noticed,
)
from tests.store.feed.worlds_of_readers import READERS, World, prepare
from tests.store.operations.test_claims_never_exceed_capacity import (
    test_concurrent_claims_queue_up_and_never_overbook,
)
from tests.store.operations.test_conditions import (
    test_random_writes_leave_what_the_page_says,
)
from tests.store.operations.test_holds import test_random_writes_leave_what_the_definition_says
from treeclaim.store import DatabaseSettings, Store

__all__ = [
    "test_a_stream_born_after_another_one_was_pruned_is_not_taken_for_it",
    "test_a_stream_that_is_born_and_pruned_between_two_reads_is_noticed",
    "test_concurrent_claims_queue_up_and_never_overbook",
    "test_random_writes_leave_what_the_definition_says",
    "test_random_writes_leave_what_the_page_says",
]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("postgresql", "mariadb")]

STAND_INS = {
    "CockroachDB": partial(
        database_of, "postgresql", stand_ins.COCKROACHDB, ids=stand_ins.ROW_IDS
    ),
    "YugabyteDB": partial(
        database_of, "postgresql", stand_ins.YUGABYTEDB, ids=stand_ins.UP_AND_DOWN
    ),
    "TiDB": partial(database_of, "mariadb", stand_ins.TIDB),
}

IN_ORDER = {test_random_writes_leave_what_the_page_says: {"ids": None}}
"""Of several conditions that stand in the way, that of the smallest id is told; the definition says, that of
the one created first."""


@pytest.fixture(params=STAND_INS)
def stand_in(request):
    """What makes a database of each."""
    return STAND_INS[request.param]


@pytest.fixture
def database_url(stand_in, request):
    """The URL of a database with schema and standard names."""
    with stand_in(**IN_ORDER.get(request.function, {})) as url:
        yield url


@pytest.fixture
def store(database_url):
    """A store on that. Transactions that are SERIALIZABLE run again and again on a busy machine."""
    with closing(Store(DatabaseSettings(database_url), attempts=100)) as made:
        yield made


@pytest.fixture
def world(stand_in):
    """A database with writers and readers."""
    with stand_in(prepare=prepare) as url, closing(World(url)) as made:
        yield made


def test_readers_know_what_a_fresh_one_knows_whatever_the_ids_are(world):
    for turn in range(6):
        for what in ("replace", "change", "claim", "describe", "trait"):
            getattr(world, what)(turn % 3, turn % 4)
            world.read(0, turn % READERS)
    world.prune_everything(0, 0)
    for number in range(READERS):
        world.read(0, number)


def test_the_service_starts_and_answers(database_url, tmp_path):
    host = "11111111-0000-4000-8000-000000000001"
    with start_on(database_url, tmp_path) as served:
        client = client_of(served, **EXTENDED)
        body = {
            "uuid": host,
            "name": "h",
            "inventories": {"CUSTOM_SLOT": {"total": 2}},
            "traits": ["CUSTOM_T"],
            "aggregates": [host],
        }
        client.put("/resource_classes/CUSTOM_SLOT")
        client.put("/traits/CUSTOM_T")
        made = client.post("/treeclaim/providers", json={"providers": [body]})
        assert made.status_code == 200, made.text
        found = client.get(
            "/allocation_candidates?resources=CUSTOM_SLOT:1&required=CUSTOM_T"
        ).json()
        assert [set(one["allocations"]) for one in found["allocation_requests"]] == [{host}]
