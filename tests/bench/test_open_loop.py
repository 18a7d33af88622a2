# SPDX-License-Identifier: Apache-2.0
"""An open loop counts what a request waits for the client's earlier ones, too."""

import threading

import pytest

from bench.clients.open_loop import Arrivals, Stream, run


def test_latency_includes_the_wait_behind_slow_requests():
    calls = []

    def send(number):
        calls.append(number)
        if number == 0:
            threading.Event().wait(0.5)

    (found,) = run([Stream(send, per_second=100, clients=1)], 0.2)
    assert calls == list(range(20))
    assert len(found.latencies) == 20
    # The second was due 10 ms after the first, which took half a second.
    assert found.latencies[1] > 0.45


def test_streams_arrive_side_by_side():
    together = threading.Barrier(2, timeout=10)
    first, second = run([Stream(lambda _: together.wait(), 20)] * 2, 0.2)
    assert len(first.latencies) == len(second.latencies) == 4


@pytest.mark.parametrize(
    ("latencies", "is_stable"),
    [([0.01] * 40, True), ([0.1 * number for number in range(40)], False), ([0.02], True)],
)
def test_growing_queue_is_not_stable(latencies, is_stable):
    assert Arrivals(latencies).is_stable is is_stable
