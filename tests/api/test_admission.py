# SPDX-License-Identifier: Apache-2.0
"""Waiting requests never take all threads of a server, and an ordinary crowd is not refused."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.bodies import claim_of
from tests.servers import eventually
from tests.service import client_of, make_application
from treeclaim.api import admission
from treeclaim.api.admission import Admission, WaitKind
from treeclaim.model.errors import OverloadedError, StoreUnavailableError


def occupy(gate, kind, count, may_end, fails=None):
    """Let requests in that stay until they may end; returns their threads."""
    inside = []

    def stay():
        try:
            with gate.admitted(kind):
                inside.append(1)
                may_end.wait(60)
                if fails is not None:
                    raise fails
        except (OverloadedError, StoreUnavailableError):
            pass

    threads = [threading.Thread(target=stay, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(inside) == count, "they are inside")
    return threads


@pytest.mark.parametrize("threads", [3, 4, 16, 32])
def test_hanging_writes_leave_threads_for_other_requests(threads, monkeypatch):
    monkeypatch.setattr(admission, "STALLED_AFTER", 0.3)
    gate, may_end = Admission(threads), threading.Event()
    writes = threads // 2
    hanging = occupy(gate, WaitKind.WRITE, writes, may_end)
    # All threads that are left come with writes; within moments they are free again.
    for _ in range(3):
        with pytest.raises(OverloadedError), gate.admitted(WaitKind.WRITE):
            pass
    reads = threads - 1 - writes
    hanging += occupy(gate, WaitKind.READ, reads, may_end)
    with pytest.raises(OverloadedError), gate.admitted(WaitKind.READ):
        pass
    with gate.admitted(WaitKind.FREE):
        pass
    may_end.set()
    for one in hanging:
        one.join(60)
    with gate.admitted(WaitKind.WRITE), gate.admitted(WaitKind.READ):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 4, 16])
def test_steady_crowd_is_served_completely(threads):
    """Each takes longer than the last, so most of them have to wait."""
    gate = Admission(threads)

    def write(number):
        with gate.admitted(WaitKind.WRITE):
            time.sleep(0.02)
        return number

    with ThreadPoolExecutor(64) as pool:
        assert list(pool.map(write, range(64))) == list(range(64))


def test_failures_do_not_count_as_progress(monkeypatch):
    """Writes that time out one after the other let no other write wait, which would be for an hour."""
    gate, may_end = Admission(4), threading.Event()
    lost = StoreUnavailableError("gone")
    failing = occupy(gate, WaitKind.WRITE, 2, may_end, lost)
    with pytest.raises(OverloadedError), gate.admitted(WaitKind.WRITE):
        pass
    may_end.set()
    for one in failing:
        one.join(60)
    may_end.clear()
    failing = occupy(gate, WaitKind.WRITE, 2, may_end, lost)
    monkeypatch.setattr(admission, "STALLED_AFTER", 3600)
    with pytest.raises(OverloadedError), gate.admitted(WaitKind.WRITE):
        pass
    may_end.set()
    for one in failing:
        one.join(60)


def test_request_of_a_disconnected_client_does_not_wait(monkeypatch):
    monkeypatch.setattr(admission, "STALLED_AFTER", 3600)
    monkeypatch.setattr(admission, "LONGEST_WAIT", 3600)
    gate, may_end = Admission(1), threading.Event()
    staying = occupy(gate, WaitKind.WRITE, 1, may_end)
    with pytest.raises(OverloadedError), gate.admitted(WaitKind.READ, lambda: True):
        pass
    may_end.set()
    staying[0].join(60)


def test_refused_requests_get_retry_after(tmp_path, monkeypatch):
    """Claims hang in the database; the next one is refused, and the rest is answered."""
    monkeypatch.setattr(admission, "STALLED_AFTER", 0.3)
    application = make_application(tmp_path)
    may_end, begun = threading.Event(), []

    def hang(*_arguments, **_named):
        begun.append(1)
        may_end.wait(60)

    with client_of(application) as client, ThreadPoolExecutor(4) as pool:
        monkeypatch.setattr("treeclaim.store.Store.write", hang)
        claims = [pool.submit(client.delete, "/traits/CUSTOM_A") for _ in range(2)]
        eventually(lambda: len(begun) == 2, "they hang")
        refused = client.delete("/traits/CUSTOM_A")
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert "busy" in refused.json()["errors"][0]["detail"]
        assert client.get("/").status_code == 200
        assert client.get("/resource_providers").status_code == 200
        may_end.set()
        assert [claim.result(60).status_code for claim in claims] == [204, 204]


def test_sixteen_claims_at_once_all_succeed_on_four_threads(tmp_path):
    application = make_application(tmp_path)
    with client_of(application) as client, ThreadPoolExecutor(16) as pool:
        host = client.post("/resource_providers", json={"name": "host"}).json()["uuid"]
        stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 64}}}
        client.put(f"/resource_providers/{host}/inventories", json=stock).raise_for_status()

        def claim(number):
            body = claim_of({host: {"resources": {"VCPU": 1}}})
            path = f"/allocations/00000000-0000-4000-8000-{number:012d}"
            return client.put(path, json=body).status_code

        assert list(pool.map(claim, range(64))) == [204] * 64
