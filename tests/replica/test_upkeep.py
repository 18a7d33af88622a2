# SPDX-License-Identifier: Apache-2.0
"""A worker that serves nothing follows the feed."""

import threading
import time

from tests.replica.scripted import scripted
from tests.replica.worlds import claim, plant
from tests.servers import eventually
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.replica import Arrival, Replica


def test_idle_worker_applies_writes(store):
    replica = Replica(store)
    replica.keep_up()
    eventually(lambda: len(replica.forest) == 20, "the Forest is loaded")
    plant(store, 100)
    claim(store, 1)
    eventually(lambda: len(replica.forest) == 21, "the Forest has the new host")


def test_upkeep_ends_with_the_store(store):
    others = set(threading.enumerate())
    Replica(store).keep_up()
    kept = Replica(store)
    kept.keep_up()
    store.close()

    def has_ended():
        own = set(threading.enumerate()) - others
        return all(thread.name != "upkeep" for thread in own)

    eventually(has_ended, "it has ended")


def test_upkeep_survives_an_unresponsive_database(replica, monkeypatch):
    def fail(_since):
        raise StoreUnavailableError

    monkeypatch.setattr(replica._follower, "catch_up", fail)
    assert replica._keep_up_once() > 0


def test_catching_up_does_not_use_search_time(replica, monkeypatch):
    catch_up = replica._follower.catch_up

    def slowly(since):
        time.sleep(0.6)
        catch_up(since)

    def search(_forest, budget):
        budget.check()
        yield b"{}"

    monkeypatch.setattr(replica._follower, "catch_up", slowly)
    for is_hard in (False, True):
        assert (
            b"".join(replica.answer(scripted(search, is_hard=is_hard), Arrival.now(0.5))) == b"{}"
        )
