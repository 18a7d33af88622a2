# SPDX-License-Identifier: Apache-2.0
"""While some ask the worst questions known, everybody else is answered, and memory is bounded.

The bound in time is that of a busy test machine.
"""

import threading
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests import peer
from tests.bodies import wanted_by
from tests.clouds import flat
from tests.clouds.bulk import write_world
from tests.faults.harness.placements import PATH, VERSION
from tests.faults.harness.service import client_of
from tests.faults.hostile_load import (
    Memory,
    ask,
    attacked,
    innocent_questions,
    proportional_bytes,
    world,
)

SECONDS = 10
MOST_BYTES = 1_000_000_000


@pytest.mark.slow
def test_sixteen_clients_with_worst_queries_do_not_slow_others(tmp_path):
    some = world(1000)
    database = f"sqlite:///{tmp_path / 'placement.db'}"
    write_world(database, some)
    with peer.treeclaim_on(database, Path(tmp_path)) as (url, process):
        paths = innocent_questions(some)
        ask(url, paths, 4, 1, 0.02)
        calm = len(psutil.Process(process.pid).children(recursive=True))
        with Memory(process) as memory, attacked(url, 16) as hostile:
            time.sleep(1)
            answer = ask(url, paths, 4, SECONDS, 0.02)
        assert set(answer.statuses) == {200}
        assert answer.percentile(0.99) < 2
        # What was broken off ran out of its time while it was sent.
        assert set(hostile.statuses) <= {0, 200, 400, 503}
        assert sum(hostile.statuses.values()) > 0
        assert memory.most < MOST_BYTES
        # Children end with their questions.
        end = time.monotonic() + 90
        while len(psutil.Process(process.pid).children(recursive=True)) > calm:
            assert time.monotonic() < end, "children are left"
            time.sleep(0.5)
        assert proportional_bytes(process) < MOST_BYTES


@contextmanager
def batches_placed(url):
    """Place batches of 1,000 one after the other during a block; yields their statuses."""
    statuses, ended = Counter(), threading.Event()

    def work():
        with client_of(url) as client:
            while not ended.is_set():
                request = wanted_by(
                    [str(uuid.uuid4()) for _ in range(1000)], "resources=VCPU:1&order_by=spread"
                )
                rules = [{"domains": "tree", "max_per_domain": 1}]
                body = {"requests": [request], "rules": rules}
                statuses[client.post(PATH, json=body, headers=VERSION).status_code] += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        thread.join()


@pytest.mark.slow
def test_searches_are_answered_while_batches_are_placed_on_the_same_worker(tmp_path):
    some = flat(10_000)
    database = f"sqlite:///{tmp_path / 'placement.db'}"
    write_world(database, some)
    with peer.treeclaim_on(database, Path(tmp_path)) as (url, _process):
        questions = [
            f"/allocation_candidates?{some.question(number)}&limit=10" for number in range(50)
        ]
        ask(url, questions, 4, 1, 0.02)
        with batches_placed(url) as statuses:
            answer = ask(url, questions, 4, SECONDS, 0.02)
    assert set(answer.statuses) == {200}
    assert answer.percentile(0.99) < 2
    assert set(statuses) == {201}
