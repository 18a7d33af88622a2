# SPDX-License-Identifier: Apache-2.0
"""An idle worker follows the feed and compacts its Forest."""

import threading
import time
import uuid

from tests.properties.forest_adapter import lowered
from tests.replica.scripted import scripted
from tests.replica.worlds import claim, plant
from tests.servers import eventually
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.parts import TRAITS
from treeclaim.replica import Arrival, Replica
from treeclaim.store.operations.providers.entries import write_part


def test_replica_is_compacted_between_turns_with_a_new_version(store):
    sizes = {
        "table.compaction.FEWEST_DEAD_ROWS": 2,
        "table.forest.ROWS_COPIED_TOGETHER": 2,
        "table.provider_table.ROWS_COPIED_TOGETHER": 2,
    }
    with lowered(sizes):
        replica = Replica(store)
        number = 0
        with replica.borrow_forest() as forest:
            before = replica.follower.version
        while not forest.is_compacting:
            number += 1
            give_trait(store, str(uuid.UUID(int=number)))
            with replica.borrow_forest() as forest:
                version = replica.follower.version
        replica.keep_up()
        eventually(lambda: not forest.is_compacting, "the compaction ends")
        assert version > before
        with replica.borrow_forest() as forest:
            assert replica.follower.version > version
            assert len(forest) == forest.row_count == 20
            assert len(forest.rows_with_trait(forest.catalogue.traits[SHARING_TRAIT].id)) == number


def give_trait(store, provider):
    store.write(write_part, provider, TRAITS, {SHARING_TRAIT}, 1)


def test_idle_worker_applies_writes(store):
    replica = Replica(store)
    replica.keep_up()
    eventually(lambda: len(replica.follower.forest) == 20, "the Forest is loaded")
    plant(store, 100)
    claim(store, 1)
    eventually(lambda: len(replica.follower.forest) == 21, "the Forest has the new host")


def test_upkeep_ends_with_the_store(store):
    other_threads = set(threading.enumerate())
    Replica(store).keep_up()
    replica = Replica(store)
    replica.keep_up()
    store.close()

    def has_ended():
        upkeep_threads = set(threading.enumerate()) - other_threads
        return all(thread.name != "upkeep" for thread in upkeep_threads)

    eventually(has_ended, "the upkeep threads have ended")


def test_upkeep_survives_an_unresponsive_database(replica, monkeypatch):
    def fail(_since):
        raise StoreUnavailableError

    monkeypatch.setattr(replica.follower, "catch_up", fail)
    assert replica._keep_up_once() > 0


def test_catching_up_does_not_use_search_time(replica, monkeypatch):
    catch_up = replica.follower.catch_up

    def slowly(since):
        time.sleep(0.6)
        catch_up(since)

    def search(_forest, budget):
        budget.check()
        yield b"{}"

    monkeypatch.setattr(replica.follower, "catch_up", slowly)
    for is_hard in (False, True):
        assert (
            b"".join(replica.answer(scripted(search, is_hard=is_hard), Arrival.now(0.5))) == b"{}"
        )
