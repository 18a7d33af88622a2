# SPDX-License-Identifier: Apache-2.0
"""Concurrent placements share a search and a transaction."""

import itertools
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.replica.worlds import claim
from treeclaim.forest.bounds import budget
from treeclaim.forest.placing import queries, series
from treeclaim.forest.placing.queries import Query
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.model.extension.placing import PlacingRequest
from treeclaim.model.request import CandidateRequest, Order, RequestGroup, Term, TermName
from treeclaim.replica import Batches, Replica
from treeclaim.replica import batches as batches_module
from treeclaim.replica.answer_cache import SlowQuestions
from treeclaim.store import Store
from treeclaim.store.reading.holders import find_holders

PACKED = Order((Term(TermName.PACK_PROVIDERS, ()),), ())
PATIENT = 60.0
HOSTS = 20
ROOM = 2
"""Consumers of four VCPU that fit a host."""


@pytest.fixture(autouse=True)
def lift_time_limits():
    """Prevent timeouts on a busy machine; a test may set its own limits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches_module, "PATIENCE", PATIENT)
        patch.setattr(batches_module, "_LONGEST_SEARCH", PATIENT)
        yield


@pytest.fixture
def batches(store):
    return Batches(store, Replica(store))


def make_request(consumer=None, name="VCPU"):
    group = RequestGroup("", {name: 4})
    consumers = (consumer or str(uuid.uuid4()),)
    return PlacingRequest((CandidateRequest((group,)),), consumers, "p", "u", "INSTANCE")


class DelayedTransaction:
    """Delays the first transaction of placements until `may_continue` is set, and records the sizes of all."""

    def __init__(self, monkeypatch):
        self.sizes = []
        self.busy, self.may_continue = threading.Event(), threading.Event()
        place_each = Store.place_each

        def slowly(store, claims, stages):
            self.sizes.append(len(claims))
            if len(self.sizes) == 1:
                self.busy.set()
                assert self.may_continue.wait(PATIENT)
            return place_each(store, claims, stages)

        monkeypatch.setattr(Store, "place_each", slowly)
        monkeypatch.setattr("treeclaim.store.writes.groups.PATIENCE", PATIENT)

    def submit(self, pool, batches, requests):
        """Submit the first request, and the others while its transaction runs."""
        first, *followers = requests
        pending = [pool.submit(batches.place, first)]
        assert self.busy.wait(PATIENT)
        pending += [pool.submit(batches.place, request) for request in followers]
        while len(batches._groups._waiting_members) < len(followers):
            threading.Event().wait(0.001)
        return pending

    def place(self, batches, requests):
        """Place consumers while the first transaction runs; return the placements."""
        with ThreadPoolExecutor(len(requests)) as pool:
            pending = self.submit(pool, batches, requests)
            self.may_continue.set()
            return [future.result(PATIENT) for future in pending]


@pytest.fixture
def delayed_transaction(monkeypatch):
    return DelayedTransaction(monkeypatch)


def hosts(placements):
    return Counter(
        uuid for placement in placements if placement is not None for uuid in placement.allocations
    )


@pytest.mark.slow
def test_concurrent_placements_share_a_batch_without_overlap(store, batches, delayed_transaction):
    requests = [make_request() for _ in range(HOSTS * ROOM + 1)]
    result = delayed_transaction.place(batches, requests)
    assert delayed_transaction.sizes == [1, HOSTS * ROOM - 1]
    assert sorted(hosts(result).values()) == [ROOM] * HOSTS
    assert [placement is None for placement in result].count(True) == 1
    placed = {each.consumer: each.allocations for each in result if each is not None}
    held = store.read(
        find_holders, sorted(consumer for each in requests for consumer in each.consumers)
    )
    assert {consumer: holder.allocations for consumer, holder in held.items()} == placed


@pytest.mark.slow
def test_consumer_with_allocations_takes_no_capacity_in_a_batch(
    store, batches, delayed_transaction
):
    present = make_request()
    allocations = {str(uuid.UUID(int=1)): {"VCPU": 4}}
    store.place([ConsumerClaim(present.consumers[0], allocations, "p", "u", None, "INSTANCE")])
    result = delayed_transaction.place(
        batches, [make_request(), present, *(make_request() for _ in range(HOSTS * ROOM - 2))]
    )
    assert result[1] is None
    assert None not in result[:1] + result[2:]


def test_one_of_two_concurrent_calls_for_a_consumer_places(batches, delayed_transaction):
    request = make_request()
    result = delayed_transaction.place(batches, [make_request(), request, request, make_request()])
    assert [placement is None for placement in result].count(True) == 1
    assert None not in (result[0], result[3])


def test_only_the_conflicting_call_of_a_batch_fails(store, batches, monkeypatch):
    place_each = Store.place_each

    def claim_first(self, claims, stages):
        (host,) = claims[0].allocations
        claim(store, uuid.UUID(host).int)
        return place_each(self, claims, stages)

    monkeypatch.setattr(Store, "place_each", claim_first)
    assert batches.place(make_request()) is None
    monkeypatch.undo()
    assert batches.place(make_request()) is not None


def test_unknown_name_affects_only_its_call(batches, delayed_transaction):
    result = delayed_transaction.place(
        batches, [make_request(), make_request(name="CUSTOM_NONE"), make_request()]
    )
    assert [placement is None for placement in result] == [False, True, False]


def test_processor_wait_does_not_mark_a_request_as_slow(batches, monkeypatch):
    """A mark would place equal requests one by one for a minute."""

    def make_query_slowly(*arguments):
        time.sleep(2 * patience)
        return Query(*arguments)

    patience = 0.5
    monkeypatch.setattr(batches_module, "_LONGEST_SEARCH", patience)
    monkeypatch.setattr(queries, "Query", make_query_slowly)
    assert batches.place(make_request()) is not None


def test_interrupted_search_is_not_reused(store, monkeypatch):
    """After any interruption, the next consumer is placed as in a fresh Forest."""
    replica = Replica(store)
    batches = Batches(store, replica)
    monkeypatch.setattr(budget, "_INTERRUPT_SECONDS", 0.0)
    # Two groups that compete for a provider, in an order for which each changed tree is searched.
    groups = tuple(RequestGroup(suffix, {"VCPU": 2}) for suffix in ("_A", "_B"))
    request = replace(make_request(), alternatives=(CandidateRequest(groups, order=PACKED),))
    interrupted = 0
    for readings in range(1, HOSTS):
        with monkeypatch.context() as patch:
            clock = clock_that_jumps_after(readings)
            patch.setattr(series, "thread_time", clock)
            early = batches.place(replace(request, consumers=(str(uuid.uuid4()),)))
        interrupted += early is None
        batches._slow = SlowQuestions()
        later_request = replace(request, consumers=(str(uuid.uuid4()),))
        with replica.borrow_forest() as forest:
            expected = series.PlacementSeries(forest, 10**9).place(
                later_request, time.thread_time() + PATIENT
            )
        result = batches.place(later_request)
        assert result is not None
        assert result.allocations == expected.allocations, readings
    assert interrupted > 3


def clock_that_jumps_after(readings):
    """A clock that passes every deadline after a number of readings."""
    clock = itertools.count(1)
    return lambda: float("inf") if next(clock) > readings else 0.0


def test_unresponsive_database_fails_all_calls_of_a_batch(
    batches, delayed_transaction, monkeypatch
):
    def fail(store, operation, *args):
        raise StoreUnavailableError("unavailable")

    with ThreadPoolExecutor(3) as pool:
        pending = delayed_transaction.submit(pool, batches, [make_request() for _ in range(3)])
        monkeypatch.setattr(Store, "read", fail)
        delayed_transaction.may_continue.set()
    failures = [future.exception() for future in pending]
    assert [isinstance(failure, StoreUnavailableError) for failure in failures] == [
        False,
        True,
        True,
    ]
