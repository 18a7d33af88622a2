# SPDX-License-Identifier: Apache-2.0
"""Leaders and followers of groups: no claim delays or fails another client's claim.

The groups are real; a function that a test can block replaces the database.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic

import pytest

from treeclaim.model.claim import ConsumerClaim
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.writes import groups as groups_module
from treeclaim.store.writes.groups import MOST_CLAIMS, MOST_REQUESTS, Groups

PATIENT = 60.0
UUIDS = [f"<{number}>" for number in range(MOST_REQUESTS + 3)]


def claim(*uuids):
    return ClaimRequest([ConsumerClaim(uuid, {"host": {"VCPU": 1}}, "p", "u") for uuid in uuids])


class Database:
    """Commits and records groups and single requests; the request "first" blocks until it is released."""

    def __init__(self):
        self.committed = []
        self.busy = threading.Event()
        self.may_go_on = threading.Event()
        self.fail = None
        self.is_divided = False
        self.groups = Groups(self.commit_group, lambda request, _: self._commit([request]))

    def commit_group(self, requests, _deadline):
        if self.fail is not None:
            raise self.fail
        if self.is_divided:
            return None
        self._commit(requests)
        return [None] * len(requests)

    def _commit(self, requests):
        names = ["".join(request.consumer_uuids) for request in requests]
        self.committed.append(names)
        if names == ["first"]:
            self.busy.set()
            assert self.may_go_on.wait(PATIENT)

    def submit(self, *uuids):
        self.groups.submit(claim(*uuids), monotonic() + PATIENT)

    @contextmanager
    def held_up(self, *names):
        """Send requests one after the other during the first transaction; yield their futures."""
        with ThreadPoolExecutor(MOST_REQUESTS + 8) as pool:
            pending = [pool.submit(self.submit, "first")]
            assert self.busy.wait(PATIENT)
            for number, name in enumerate(names, 1):
                uuids = [name] if isinstance(name, str) else name
                pending.append(pool.submit(self.submit, *uuids))
                self.await_waiting(number)
            yield pool, pending
            self.may_go_on.set()
            for future in pending:
                future.result(PATIENT)
        assert not self.groups._waiting_members
        assert not self.groups._running_groups
        assert self.groups._leaders == 0

    def await_waiting(self, number):
        """Wait until this number of requests waits for the running transaction."""
        end = monotonic() + PATIENT
        while len(self.groups._waiting_members) < number:
            assert monotonic() < end
            threading.Event().wait(0.001)


@pytest.fixture
def database(monkeypatch):
    monkeypatch.setattr(groups_module, "PATIENCE", PATIENT)
    return Database()


@pytest.mark.parametrize(
    ("names", "committed"),
    [
        (["a", "b", "c"], [["a", "b", "c"]]),
        # Claims of one consumer are in different groups, in the order of arrival.
        (["a", ("b", "c"), "c", "b", "d"], [["a", "bc", "d"], ["c", "b"]]),
        (UUIDS, [UUIDS[:MOST_REQUESTS], UUIDS[MOST_REQUESTS:]]),
    ],
)
def test_claims_that_come_during_a_transaction_are_the_next_groups(database, names, committed):
    with database.held_up(*names):
        pass
    assert database.committed == [["first"], *committed]


def test_large_request_is_a_transaction_of_its_own_and_waits_for_nobody(database):
    names = [f"<{number}>" for number in range(MOST_CLAIMS + 1)]
    with database.held_up() as (pool, _):
        pool.submit(database.submit, *names).result(PATIENT)
    assert database.committed == [["first"], ["".join(names)]]


def test_hanging_transaction_holds_up_nobody_and_its_host_is_in_no_group(database, monkeypatch):
    monkeypatch.setattr(groups_module, "PATIENCE", 0.05)
    with database.held_up() as (pool, _):
        futures = [pool.submit(database.submit, name) for name in ("a", "b", "c")]
        for future in futures:
            future.result(PATIENT)
    assert sorted(database.committed) == [["a"], ["b"], ["c"], ["first"]]


def test_divided_group_runs_one_by_one(database):
    database.is_divided = True
    with database.held_up("a", "b", "c"):
        pass
    assert sorted(database.committed) == [["a"], ["b"], ["c"], ["first"]]


def test_fault_in_a_leader_is_the_leaders_alone(database):
    database.fail = RuntimeError("a fault of the program")
    with database.held_up("a", "b", "c") as (_, pending):
        leader = pending.pop(1)
    with pytest.raises(RuntimeError):
        leader.result(PATIENT)
    assert sorted(database.committed) == [["b"], ["c"], ["first"]]
    # Every group has a leader.
    database.fail = None
    database.submit("f")
    assert database.committed[-1] == ["f"]
