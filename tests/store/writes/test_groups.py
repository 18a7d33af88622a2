# SPDX-License-Identifier: Apache-2.0
"""Leaders and followers of groups: no claim delays or fails another client's claim.

The groups are real; what stands for the database is a function that a test holds up.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest

from treeclaim.model.claim import ConsumerClaim
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.writes import groups as groups_module
from treeclaim.store.writes.groups import MOST_CLAIMS, MOST_REQUESTS, Fate, Groups

PATIENT = 60.0


def claim(*uuids):
    return ClaimRequest([ConsumerClaim(uuid, {"host": {"VCPU": 1}}, "p", "u") for uuid in uuids])


class Database:
    """Commits groups and single requests, and notes them; the first one waits if it is told to."""

    def __init__(self):
        self.committed = []
        self.busy = threading.Event()
        self.may_go_on = threading.Event()
        self.fail = None
        self.groups = Groups(self.commit_group, self.commit_alone)

    def commit_alone(self, member):
        self._commit([member])

    def commit_group(self, group):
        if self.fail is not None:
            self.fail(group)
            return
        self._commit(group)
        leader, *others = group
        leader.fate = Fate.DONE
        for member in others:
            member.decide(Fate.DONE)

    def _commit(self, group):
        names = ["".join(member.request.consumer_uuids) for member in group]
        self.committed.append(names)
        if names == ["first"]:
            self.busy.set()
            assert self.may_go_on.wait(PATIENT)

    def submit(self, *uuids):
        self.groups.submit(claim(*uuids), monotonic() + PATIENT)


def waiting(database, number):
    """Wait until so many requests wait for the transaction under way."""
    end = monotonic() + PATIENT
    while len(database.groups._waiting) < number:
        assert monotonic() < end
        threading.Event().wait(0.001)


@pytest.fixture
def database(monkeypatch):
    monkeypatch.setattr(groups_module, "PATIENCE", PATIENT)
    return Database()


def held_up(database, pool, *names):
    """Let requests come one after the other while the first transaction is under way."""
    pending = [pool.submit(database.submit, "first")]
    assert database.busy.wait(PATIENT)
    for number, name in enumerate(names, 1):
        pending.append(pool.submit(database.submit, *([name] if isinstance(name, str) else name)))
        waiting(database, number)
    return pending


def finish(pending):
    for one in pending:
        one.result(PATIENT)


def test_claims_that_come_during_a_transaction_are_the_next_group_in_their_order(database):
    with ThreadPoolExecutor(8) as pool:
        pending = held_up(database, pool, "a", "b", "c")
        database.may_go_on.set()
        finish(pending)
    assert database.committed == [["first"], ["a", "b", "c"]]


def test_claims_of_one_consumer_are_committed_in_the_order_in_which_they_came(database):
    with ThreadPoolExecutor(8) as pool:
        pending = held_up(database, pool, "a", ("b", "c"), "c", "b", "d")
        database.may_go_on.set()
        finish(pending)
    assert database.committed == [["first"], ["a", "bc", "d"], ["c", "b"]]


def test_a_group_has_a_bounded_size(database):
    names = [f"<{number}>" for number in range(MOST_REQUESTS + 3)]
    with ThreadPoolExecutor(len(names) + 1) as pool:
        pending = held_up(database, pool, *names)
        database.may_go_on.set()
        finish(pending)
    assert [len(group) for group in database.committed] == [1, MOST_REQUESTS, 3]


def test_a_large_request_is_a_transaction_of_its_own(database):
    many = [f"<{number}>" for number in range(MOST_CLAIMS + 1)]
    with ThreadPoolExecutor(2) as pool:
        pending = held_up(database, pool)
        # It waits for nobody either.
        pool.submit(database.submit, *many).result(PATIENT)
        database.may_go_on.set()
        finish(pending)
    assert database.committed == [["first"], ["".join(many)]]


def test_a_transaction_that_hangs_does_not_hold_up_those_that_wait(database, monkeypatch):
    monkeypatch.setattr(groups_module, "PATIENCE", 0.01)
    with ThreadPoolExecutor(4) as pool:
        pending = held_up(database, pool)
        finish([pool.submit(database.submit, name) for name in ("a", "b", "c")])
        names = sorted(name for group in database.committed for name in group)
        assert names == ["a", "b", "c", "first"]
        database.may_go_on.set()
        finish(pending)
    assert not database.groups._waiting
    assert database.groups._leaders == 0


def test_a_group_that_fails_is_divided_and_each_is_told_its_own_fate(database):
    def divide(group):
        group[0].fate = Fate.ALONE
        for member in group[1:]:
            member.decide(Fate.ALONE)

    database.fail = divide
    with ThreadPoolExecutor(8) as pool:
        pending = held_up(database, pool, "a", "b", "c")
        database.may_go_on.set()
        finish(pending)
    assert sorted(map(tuple, database.committed)) == [("a",), ("b",), ("c",), ("first",)]


def test_a_fault_in_a_leader_is_the_leaders_alone(database):
    def break_down(group):
        raise RuntimeError("a fault of the program")

    database.fail = break_down
    with ThreadPoolExecutor(8) as pool:
        first, leader, *others = held_up(database, pool, "a", "b", "c")
        database.may_go_on.set()
        finish([first, *others])
        with pytest.raises(RuntimeError):
            leader.result(PATIENT)
    assert sorted(map(tuple, database.committed)) == [("b",), ("c",), ("first",)]
    assert database.groups._leaders == 0


def test_what_a_stuck_transaction_names_is_in_no_group(database, monkeypatch):
    monkeypatch.setattr(groups_module, "PATIENCE", 0.05)
    with ThreadPoolExecutor(8) as pool:
        # All name the same host, which the first one waits for.
        pending = held_up(database, pool)
        finish([pool.submit(database.submit, name) for name in ("a", "b", "c")])
        database.may_go_on.set()
        finish(pending)
    assert all(len(group) == 1 for group in database.committed)
    assert not database.groups._running


def fates(database, *names):
    """Return the outcomes of requests that come together."""
    requests = [claim(name) for name in names]
    return [one.fate for one in database.groups.submit_all(requests, monotonic() + PATIENT)]


def test_requests_that_come_together_are_one_group(database):
    assert fates(database, "a", "b", "c") == [Fate.DONE] * 3
    assert database.committed == [["a", "b", "c"]]


def test_requests_that_come_together_join_the_next_group(database):
    with ThreadPoolExecutor(4) as pool:
        pending = held_up(database, pool, "a")
        together = pool.submit(fates, database, "b", "c")
        waiting(database, 3)
        database.may_go_on.set()
        finish(pending)
        assert together.result(PATIENT) == [Fate.DONE] * 2
    assert database.committed == [["first"], ["a", "b", "c"]]


def test_requests_that_came_together_are_given_back_when_their_group_fails(database):
    def divided(group):
        leader, *others = group
        leader.fate = Fate.ALONE
        for member in others:
            member.decide(Fate.ALONE)

    database.fail = divided
    assert fates(database, "a", "b", "c") == [Fate.ALONE] * 3
    assert database.committed == []


def test_a_group_that_breaks_leaves_none_of_those_that_came_together_without_a_leader(database):
    def broken(group):
        raise ZeroDivisionError

    database.fail = broken
    with pytest.raises(ZeroDivisionError):
        fates(database, "a", "b", "c")
    database.fail = None
    database.submit("d")
    assert database.committed == [["d"]]


def test_requests_that_came_together_wait_for_no_transaction_that_hangs(database, monkeypatch):
    monkeypatch.setattr(groups_module, "PATIENCE", 0.01)
    with ThreadPoolExecutor(2) as pool:
        pending = held_up(database, pool)
        # The transaction names their host too: each is to wait for it by itself.
        assert pool.submit(fates, database, "a", "b").result(PATIENT) == [Fate.ALONE] * 2
        database.may_go_on.set()
        finish(pending)
    assert database.committed == [["first"]]
    assert not database.groups._waiting
