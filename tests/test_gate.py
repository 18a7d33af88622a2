# SPDX-License-Identifier: Apache-2.0
"""A gate admits up to its limit, in order, and no wait exceeds its bound."""

import threading

import pytest

from tests.servers import eventually
from treeclaim.gate import Gate
from treeclaim.model.errors import OverloadedError


def start(target):
    """Run an action in a thread."""
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


def test_waiters_enter_in_order_of_arrival():
    gate, order, threads = Gate(1), [], []
    assert gate.acquire(0)

    def enter(number):
        assert gate.acquire(60)
        order.append(number)
        gate.release()

    for number in range(8):
        threads.append(start(lambda number=number: enter(number)))
        eventually(lambda number=number: gate.waiting_count == number + 1, "a thread waits")
    gate.release()
    for thread in threads:
        thread.join(60)
    assert order == list(range(8))
    assert (gate.inside_count, gate.waiting_count) == (0, 0)


def test_number_inside_is_limited():
    gate, lock, inside, most = Gate(3), threading.Lock(), [], []

    def work():
        for _ in range(200):
            with gate.occupy(60):
                with lock:
                    inside.append(1)
                    most.append(len(inside))
                with lock:
                    inside.pop()

    threads = [start(work) for _ in range(12)]
    for thread in threads:
        thread.join(60)
    assert 1 <= max(most) <= 3
    assert (gate.inside_count, gate.waiting_count) == (0, 0)


def test_a_wait_ends_in_time_and_leaves_no_trace():
    gate = Gate(1)
    assert gate.acquire(0)
    with pytest.raises(OverloadedError), gate.occupy(0.2):
        pass
    assert gate.waiting_count == 0
    gate.release()
    assert gate.acquire(0)


def test_waiting_places_are_limited():
    gate = Gate(1, max_total=2)
    assert gate.acquire(0)
    waiter = start(lambda: gate.acquire(60))
    eventually(lambda: gate.waiting_count == 1, "a thread waits")
    assert not gate.acquire(3600)
    gate.release()
    waiter.join(60)
    assert gate.inside_count == 1
