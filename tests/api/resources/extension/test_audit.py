# SPDX-License-Identifier: Apache-2.0
"""Repairs at their deadline, and repairs while providers are created; `gabbits/audit.yaml` has the other rules."""

import itertools
import time

import pytest
import sqlalchemy as sa

from tests.api.resources.extension.clouds import cloud_on, uuid_of
from tests.api.resources.extension.test_pages_and_writers import busy
from tests.databases import EACH_DATABASE
from treeclaim.model import timing
from treeclaim.store.schema import tables

PATH = "/treeclaim/audit"
REPAIRS = f"{PATH}/repairs"


def test_timed_out_repairs_report_completed_ones(tmp_path, monkeypatch):
    consumers = [uuid_of(f"left {number}") for number in range(40)]
    repairs = [{"kind": "empty_consumer", "consumer": consumer} for consumer in consumers]
    records = [
        {"uuid": uuid, "project_id": 1, "user_id": 1, "generation": 0} for uuid in consumers
    ]
    with cloud_on("sqlite", tmp_path) as cloud:
        with cloud.engine.begin() as connection:
            connection.execute(sa.insert(tables.consumers), records)
        # The clock of deadlines, on which each look takes half a second.
        clock = itertools.count(time.monotonic(), 0.5)
        monkeypatch.setattr(timing, "monotonic", lambda: next(clock))
        answer = cloud.client.post(REPAIRS, json={"repairs": repairs})
        monkeypatch.undo()
        findings = cloud.ask(PATH, kind="empty_consumer")["findings"]["empty_consumer"]["items"]
    results = [repair["result"] for repair in answer.json()["repairs"]]
    count = results.count("done")
    assert 0 < count < len(consumers)
    assert results == ["done"] * count + ["refused"] * (len(consumers) - count)
    details = [repair["detail"] for repair in answer.json()["repairs"][count:]]
    assert all("the deadline of the request has passed" in detail for detail in details[1:])
    assert {item["consumer"] for item in findings} == set(consumers[count:])


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_dangling_rows_are_removed_without_touching_new_providers(kind, tmp_path):
    """Providers come with inventories, some with the very ids of the rows that are deleted."""
    numbers = itertools.count()
    lost = []
    with cloud_on(kind, tmp_path) as cloud:

        def create(_step):
            uuid = uuid_of(f"host-{next(numbers)}")
            entry = {"uuid": uuid, "name": uuid, "inventories": {"VCPU": {"total": 16}}}
            cloud.post("/treeclaim/providers", {"providers": [entry]})
            path = f"/resource_providers/{uuid}/inventories"
            inventories = cloud.client.get(path).json()["inventories"]
            if list(inventories) != ["VCPU"]:
                lost.append(inventories)

        repairs = [
            {"kind": "without_provider", "table": "inventories", "provider_id": provider_id}
            for provider_id in range(2, 2_000)
        ]
        results = set()
        with busy(create):
            for start in range(0, 240, 12):
                answer = cloud.post(REPAIRS, {"repairs": repairs[start : start + 40]})["repairs"]
                results |= {repair["result"] for repair in answer}
    assert not lost
    assert results == {"gone"}
