# SPDX-License-Identifier: Apache-2.0
"""A replica shows every write committed before a read, and a long answer is of one moment."""

import json
import uuid
from types import SimpleNamespace

import pytest

from treeclaim import replica as replica_module
from treeclaim.forest.bounds import budget
from treeclaim.forest.solve import repetition
from treeclaim.forest.solve import search as search_module
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.inventory import Inventory
from treeclaim.model.request import BodyForm, CandidateRequest, RequestGroup, SearchOptions
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations import allocations, inventories, providers
from treeclaim.store.operations.names import sync_standard_names
from treeclaim.store.schema import revisions as schema

REQUEST = CandidateRequest((RequestGroup("", {"VCPU": 1}),))


@pytest.fixture
def store(tmp_path):
    """A store with twenty hosts."""
    made = Store(DatabaseSettings(f"sqlite:///{tmp_path / 'placement.db'}"))
    schema.sync(made.engine)
    made.write(sync_standard_names)
    for number in range(20):
        one = str(uuid.UUID(int=number + 1))
        made.write(providers.create, uuid=one, name=f"host {number}", parent_uuid=None)
        stock = {"VCPU": Inventory(total=8)}
        made.write(inventories.replace_all, one, 0, stock, zero_capacity_allowed=True)
    yield made
    made.close()


def claim(store, provider):
    """Claim all eight units of a host."""
    wanted = {provider: {"VCPU": 8}}
    claimed = ConsumerClaim(str(uuid.uuid4()), wanted, "project", "user", None, "INSTANCE")
    store.write(allocations.replace, [claimed])


def pieces_of(replica):
    """The pieces of the answer to `REQUEST`."""
    return iter(replica.answer(REQUEST, SearchOptions(), BodyForm()))


def test_a_claim_is_seen_by_the_next_search(store):
    replica = Replica(store)
    before = json.loads(b"".join(pieces_of(replica)))
    taken = str(uuid.UUID(int=3))
    claim(store, taken)
    after = json.loads(b"".join(pieces_of(replica)))
    assert len(before["allocation_requests"]) == 20
    assert len(after["allocation_requests"]) == 19
    assert taken not in after["provider_summaries"]


def test_an_answer_is_kept_until_something_changes(store, monkeypatch):
    replica = Replica(store)
    first = b"".join(pieces_of(replica))
    searched = []
    search = replica_module.search
    monkeypatch.setattr(
        replica_module, "search", lambda *args: searched.append(args) or search(*args)
    )
    assert b"".join(pieces_of(replica)) == first
    assert searched == []
    claim(store, str(uuid.UUID(int=3)))
    assert b"".join(pieces_of(replica)) != first
    assert len(searched) == 1


def test_a_random_sample_is_drawn_anew(store):
    replica = Replica(store)
    options = SearchOptions(randomize=True)
    drawn = {b"".join(replica.answer(REQUEST, options, BodyForm())) for _ in range(20)}
    assert len(drawn) > 1


def test_many_different_questions_do_not_fill_the_memory(store, monkeypatch):
    monkeypatch.setattr(replica_module, "_MOST_KEPT", 5)
    replica = Replica(store)
    for amount in range(1, 9):
        request = CandidateRequest((RequestGroup("", {"VCPU": amount}),))
        list(replica.answer(request, SearchOptions(), BodyForm()))
        assert len(replica._answers) <= 5


def test_a_long_answer_is_of_the_moment_when_it_was_asked_for(store, monkeypatch):
    expected = b"".join(pieces_of(Replica(store)))
    replica = Replica(store)
    monkeypatch.setattr(replica_module, "_WHOLE_ANSWER", 100)
    pieces = pieces_of(replica)
    begun = next(pieces)
    claim(store, str(uuid.UUID(int=3)))
    gone = str(uuid.UUID(int=4))
    store.write(inventories.delete_all, gone)
    store.write(providers.delete, gone)
    with replica.current() as forest:
        assert len(forest) == 19
    rest = b"".join(pieces)
    assert rest
    assert begun + rest == expected


@pytest.fixture
def long_answer(store, monkeypatch):
    """A question with a streamed answer of many pieces, and a clock that tests move."""
    request = CandidateRequest((RequestGroup("_A", {"VCPU": 5}), RequestGroup("_B", {"VCPU": 3})))
    monkeypatch.setattr(replica_module, "_WHOLE_ANSWER", 100)
    monkeypatch.setattr(search_module, "_LARGEST_BLOCK", 2)
    monkeypatch.setattr(repetition, "BLOCK", 2)
    now = [0.0]
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now[0]))
    options = SearchOptions(seconds=30)
    return iter(Replica(store).answer(request, options, BodyForm())), now


def test_the_time_in_which_a_client_reads_is_not_that_of_its_question(store, long_answer):
    pieces, now = long_answer
    read = []
    for piece in pieces:
        read.append(piece)
        now[0] += 10.0
    assert len(read) > 10
    assert len(json.loads(b"".join(read))["allocation_requests"]) == 20


def test_an_answer_is_not_computed_for_longer_than_a_question_may_take(long_answer, monkeypatch):
    pieces, now = long_answer
    next(pieces)
    check = budget.Budget.check

    def slow(self):
        now[0] += 4.0
        check(self)

    monkeypatch.setattr(budget.Budget, "check", slow)
    with pytest.raises(SearchGivenUpError):
        b"".join(pieces)
