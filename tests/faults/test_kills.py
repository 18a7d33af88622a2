# SPDX-License-Identifier: Apache-2.0
"""Processes die at the worst moment; what was promised stays, and the service comes back."""

import threading
import uuid

import httpx
import pytest

from tests.faults.harness.load import Load, build
from tests.faults.harness.service import body_of, client_of, eventually, running

WRITES = 25
BATCH = 200
TRAITS = ("HW_CPU_X86_AVX2", "HW_CPU_X86_SSE")
EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
LEAST_KILLS, MOST_KILLS = 2, 10

pytestmark = pytest.mark.slow


def test_killed_workers_leave_no_half_claim_and_are_replaced(database, tmp_path):
    with running(database, tmp_path) as service:
        load = Load([service.url], build(service.url))
        with load:
            # A change of an inventory seldom comes before all claims that it meets.
            eventually(lambda: load.answers["reshaped"] or load.problems)
            for kills in range(MOST_KILLS):
                load.wait_for(WRITES)
                # A worker may be idle when it is killed; what is judged is a claim cut in half.
                if kills >= LEAST_KILLS and load.answers["lost"]:
                    break
                for worker in service.workers()[:2]:
                    worker.kill()
                eventually(lambda: len(service.workers()) >= 4)
            load.wait_for(WRITES)
        load.judge()
        for kind in ("lost", "placed", "reshaped", "drawn"):
            assert load.answers[kind] > 0, load.answers


class Batches(threading.Thread):
    """A client that gives all hosts of its own the same inventory, by one call, again and again.

    Attributes:
        done, lost: How many calls were answered, and how many were not.
    """

    def __init__(self, url, name):
        """Name the hosts; the calls begin with `start`."""
        super().__init__(daemon=True)
        self.done = self.lost = 0
        self.hosts = [
            str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name} {number}")) for number in range(BATCH)
        ]
        self._url = url
        self._name = name
        self.is_over = threading.Event()

    def run(self):
        """Write until told to stop."""
        step = 0
        while not self.is_over.is_set():
            step += 1
            entries = [
                {
                    "uuid": one,
                    "name": f"{self._name} {number}",
                    "inventories": {"VCPU": {"total": step}},
                    "traits": [TRAITS[step % 2]],
                }
                for number, one in enumerate(self.hosts)
            ]
            try:
                with client_of(self._url) as client:
                    answer = client.post(
                        "/treeclaim/providers", json={"providers": entries}, headers=EXTENDED
                    )
                if answer.is_success:
                    self.done += 1
                else:
                    self.lost += 1
            except httpx.HTTPError:
                self.lost += 1

    def states(self):
        """Return the states of the hosts, each combination once."""
        with client_of(self._url) as client:
            query = {"uuid": "in:" + ",".join(self.hosts), "include": "inventories,traits"}
            answer = body_of(client, "/treeclaim/providers", params=query, headers=EXTENDED)
        providers = answer["providers"]
        states = {(one["inventories"]["VCPU"]["total"], tuple(one["traits"])) for one in providers}
        return len(providers), states


def test_killed_workers_leave_no_half_batch(database, tmp_path):
    with running(database, tmp_path) as service:
        writers = [Batches(service.url, f"writer {number}") for number in range(2)]
        for writer in writers:
            writer.start()
        for kills in range(MOST_KILLS):
            before = sum(writer.done for writer in writers)
            eventually(lambda before=before: sum(writer.done for writer in writers) > before + 3)
            if kills >= LEAST_KILLS and any(writer.lost for writer in writers):
                break
            for worker in service.workers()[:2]:
                worker.kill()
            eventually(lambda: len(service.workers()) >= 4)
        for writer in writers:
            writer.is_over.set()
        for writer in writers:
            writer.join()
            count, states = writer.states()
            assert (count, len(states)) == (BATCH, 1), states
        assert any(writer.lost for writer in writers)


def test_killed_database_loses_nothing_and_workers_reconnect(own_server, tmp_path):
    with own_server.database(tmp_path) as database, running(database, tmp_path) as service:
        load = Load([service.url], build(service.url))
        with load:
            load.wait_for(WRITES)
            own_server.kill()
            before = load.answers["unavailable"]
            eventually(lambda: load.answers["unavailable"] > before)
            own_server.start()
            load.wait_for(WRITES)
        load.judge()


def test_workers_killed_during_a_database_outage_are_replaced(own_server, tmp_path):
    with (
        own_server.database(tmp_path) as database,
        running(
            database, tmp_path, workers=2, OS_PLACEMENT_DATABASE__RETRY_INTERVAL="1"
        ) as service,
    ):
        before = {worker.pid for worker in service.workers()}
        own_server.kill()
        for one in service.workers():
            one.kill()
        eventually(lambda: not before & {worker.pid for worker in service.workers()})
        own_server.start()
        eventually(service.answers)
        assert service.process.poll() is None
        eventually(lambda: len(service.workers()) >= 2)
