# SPDX-License-Identifier: Apache-2.0
"""At fixed rates a latency counts what a request waits for the client's earlier ones, too."""

import threading

from bench.clients.loads import at_fixed_rates


def test_latency_includes_the_wait_behind_slow_requests():
    calls = []

    def send(number):
        calls.append(number)
        if number == 0:
            threading.Event().wait(0.5)

    (latencies,) = at_fixed_rates([(send, 100)], 0.2, clients=1)
    assert calls == list(range(20))
    assert len(latencies) == 20
    # The second was due 10 ms after the first, which took half a second.
    assert latencies[1] > 0.45


def test_streams_arrive_side_by_side():
    together = threading.Barrier(2, timeout=10)
    first, second = at_fixed_rates([(lambda _: together.wait() >= 0, 20.0)] * 2, 0.2)
    assert len(first) == len(second) == 4
