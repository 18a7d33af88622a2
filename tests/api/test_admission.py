# SPDX-License-Identifier: Apache-2.0
"""Waiting requests never take all threads of a server, and an ordinary crowd is not refused."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.servers import eventually
from tests.service import client_of, make_application
from treeclaim.api import admission
from treeclaim.api.admission import Admission, WaitKind
from treeclaim.model.errors import OverloadedError, StoreUnavailableError


@contextmanager
def occupied(gate, kind, count, fails=None):
    """Keep requests inside until the block ends."""
    inside, may_end = [], threading.Event()

    def stay():
        try:
            with gate.admit(kind):
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
    try:
        yield
    finally:
        may_end.set()
        for thread in threads:
            thread.join(60)


@pytest.mark.parametrize("threads", [3, 4, 16, 32])
def test_hanging_writes_leave_threads_for_other_requests(threads, monkeypatch):
    monkeypatch.setattr(admission, "STALLED_AFTER", 0.3)
    gate = Admission(threads)
    writes = threads // 2
    with occupied(gate, WaitKind.WRITE, writes):
        # All threads that are left come with writes; within moments they are free again.
        for _ in range(3):
            with pytest.raises(OverloadedError), gate.admit(WaitKind.WRITE):
                pass
        with occupied(gate, WaitKind.READ, threads - 1 - writes):
            with pytest.raises(OverloadedError), gate.admit(WaitKind.READ):
                pass
            with gate.admit(WaitKind.NOTHING):
                pass
    with gate.admit(WaitKind.WRITE), gate.admit(WaitKind.READ):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 4, 16])
def test_steady_crowd_is_served_completely(threads):
    """Each takes longer than the last, so most of them have to wait."""
    gate = Admission(threads)

    def write(number):
        with gate.admit(WaitKind.WRITE):
            time.sleep(0.02)
        return number

    with ThreadPoolExecutor(64) as pool:
        assert list(pool.map(write, range(64))) == list(range(64))


def test_failures_do_not_count_as_progress():
    """Writes that time out one after the other delay no other write."""
    gate, lost = Admission(4), StoreUnavailableError("gone")
    for seconds in (admission.STALLED_AFTER, 3600):
        with (
            occupied(gate, WaitKind.WRITE, 2, lost),
            pytest.MonkeyPatch.context() as patch,
            pytest.raises(OverloadedError),
        ):
            patch.setattr(admission, "STALLED_AFTER", seconds)
            with gate.admit(WaitKind.WRITE):
                pass


def test_request_of_a_disconnected_client_does_not_wait(monkeypatch):
    monkeypatch.setattr(admission, "STALLED_AFTER", 3600)
    monkeypatch.setattr(admission, "LONGEST_WAIT", 3600)
    gate = Admission(1)
    with (
        occupied(gate, WaitKind.WRITE, 1),
        pytest.raises(OverloadedError),
        gate.admit(WaitKind.READ, lambda: True),
    ):
        pass


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
