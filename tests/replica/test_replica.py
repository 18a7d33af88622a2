# SPDX-License-Identifier: Apache-2.0
"""A replica shows every write committed before a read, and an answer shows one snapshot."""

import json
import os
import threading
import uuid
from dataclasses import replace
from time import monotonic

import pytest

from tests.replica.scripted import scripted
from tests.replica.worlds import ONE_VCPU, claim, plant, question
from tests.store.hosts import write_inventories
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.microversions import NEWEST
from treeclaim.model.request import CandidateRequest, RequestGroup
from treeclaim.replica import Replica, answer_cache, child
from treeclaim.replica import replica as replica_module
from treeclaim.replica.answer_cache import AnswerCache, WholeAnswer
from treeclaim.replica.following import Follower
from treeclaim.replica.questions import make_question_key
from treeclaim.store.operations.providers import providers


def body_of(replica, repeated_question=None):
    """Return the parsed answer to a question."""
    return json.loads(b"".join(replica.answer(repeated_question or question())))


def test_response_is_cached_until_a_change(store):
    replica = Replica(store)
    inner, begun = question(), []

    def work(*arguments):
        begun.append(arguments)
        return inner.work(*arguments)

    repeated = replace(inner, work=work)
    first = body_of(replica, repeated)
    assert body_of(replica, repeated) == first
    assert len(begun) == 1
    claim(store, 3)
    assert body_of(replica, repeated) != first
    assert len(begun) == 2


def test_random_sample_is_not_cached(store):
    replica = Replica(store)
    drawn = {b"".join(replica.answer(question(randomize=True))) for _ in range(20)}
    assert len(drawn) > 1


def test_response_cache_is_bounded_for_small_responses(monkeypatch):
    monkeypatch.setattr(answer_cache, "_MOST_BYTES", 100_000)
    answers = AnswerCache()
    for number in range(1_000):
        answers.keep(0, make_question_key(str(number), NEWEST), WholeAnswer((b"",), 0))
    assert (
        sum(
            answers.find(0, make_question_key(str(number), NEWEST)) is not None
            for number in range(1_000)
        )
        < 200
    )
    assert answers.find(0, make_question_key("999", NEWEST)) is not None
    assert answers.find(0, make_question_key("0", NEWEST)) is None


def test_overlong_response_is_started_once_in_the_worker(store, monkeypatch):
    begun = []

    def script(_forest, _budget):
        begun.append(os.getpid())
        yield b"x" * 1000
        yield b"y" * 1000

    monkeypatch.setattr(child, "WHOLE_ANSWER", 100)
    monkeypatch.setattr(replica_module, "WHOLE_ANSWER", 100)
    body = b"".join(Replica(store).answer(scripted(script, is_hard=False)))
    assert body == b"x" * 1000 + b"y" * 1000
    assert begun == [os.getpid()]


def test_long_response_shows_one_snapshot(store, monkeypatch):
    expected = b"".join(Replica(store).answer(question()))
    replica = Replica(store)
    monkeypatch.setattr(child, "WHOLE_ANSWER", 100)
    monkeypatch.setattr(replica_module, "WHOLE_ANSWER", 100)
    pieces = iter(replica.answer(question()))
    begun = next(pieces)
    claim(store, 3)
    deleted = str(uuid.UUID(int=4))
    store.write(write_inventories, deleted, {})
    store.write(providers.delete, deleted)
    with replica.borrow_forest() as forest:
        assert len(forest) == 19
    remainder = b"".join(pieces)
    assert remainder
    assert bytes(begun) + remainder == expected


@pytest.mark.slow
def test_each_search_during_tree_changes_shows_one_snapshot(store):
    """Hosts are added while threads search; no answer has a part of a host."""
    replica = Replica(store)
    request = CandidateRequest((RequestGroup("_A", {"VCPU": 1}), RequestGroup("_B", {"VCPU": 1})))
    failures, counts = [], []
    ended = threading.Event()

    def search_repeatedly():
        while not ended.is_set():
            try:
                body = body_of(replica, question(request, key=uuid.uuid4().hex))
            except TreeclaimError as error:
                failures.append(error)
                return
            named = {
                uuid_
                for allocation_request in body["allocation_requests"]
                for uuid_ in allocation_request["allocations"]
            }
            if named != set(body["provider_summaries"]):
                failures.append(body)
            counts.append(len(named))

    threads = [threading.Thread(target=search_repeatedly) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(100, 140):
        plant(store, number)
    ended.set()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert max(counts) > 20
    assert len(body_of(replica, question(ONE_VCPU, key="last"))["allocation_requests"]) == 60


def write_outside_the_feed(store, number, total):
    """Change an inventory without an entry in the change feed."""
    provider = "(SELECT id FROM resource_providers WHERE uuid = ?)"
    uuid_text = str(uuid.UUID(int=number))
    with store.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE inventories SET total = ? WHERE resource_provider_id = {provider}",
            (total, uuid_text),
        )
        connection.exec_driver_sql(
            "UPDATE resource_providers SET generation = generation + 1 WHERE uuid = ?",
            (uuid_text,),
        )


@pytest.mark.parametrize("within", [True, False])
def test_write_outside_the_feed_is_seen_with_the_next_claim(store, within):
    follower = Follower(store)
    follower.catch_up(monotonic())
    write_outside_the_feed(store, 3, total=2)
    claim(store, 3, amount=1)
    if within:
        store.read(follower.catch_up_within)
    else:
        follower.catch_up(monotonic())
    row = follower.forest.row_of(str(uuid.UUID(int=3)))
    (held,) = follower.forest.inventories(row)
    assert (held.inventory.total, held.used) == (2, 1)
