# SPDX-License-Identifier: Apache-2.0
"""A service with `slave_connection` answers from the standby, and as one without it does."""

import uuid

import pytest

from tests.service import client_of, start_on
from tests.store.standby.pairs import Reads
from treeclaim.store.standby import standby as module

pytestmark = pytest.mark.slow

READS = (
    "/resource_providers/{provider}/allocations",
    "/allocations/{consumer}",
    "/usages?project_id=project",
)
TOO_LONG = 60.0


def test_what_is_written_is_listed_from_the_standby(shared_pair, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CATCH_UP_SECONDS", TOO_LONG)
    places = {"placement_database.slave_connection": settings.standby_url}
    with (
        start_on(settings.url, tmp_path, **places) as application,
        client_of(application, **{"OpenStack-API-Version": "placement 1.39"}) as client,
    ):
        provider, consumer = str(uuid.uuid4()), str(uuid.uuid4())
        client.post("/resource_providers", json={"uuid": provider, "name": "host"})
        inventory = {
            "inventories": {"VCPU": {"total": 16}},
            "resource_provider_generation": 0,
        }
        client.put(f"/resource_providers/{provider}/inventories", json=inventory)
        generation = None
        for number, units in enumerate((3, 5, 2)):
            claim = {
                "allocations": {provider: {"resources": {"VCPU": units}}},
                "project_id": "project",
                "user_id": "user",
                "consumer_generation": generation,
                "consumer_type": "INSTANCE",
            }
            assert client.put(f"/allocations/{consumer}", json=claim).status_code == 204
            generation = number + 1
            reads = Reads()
            at_provider, of_consumer, of_project = (
                client.get(path.format(provider=provider, consumer=consumer)).json()
                for path in READS
            )
            share = {"resources": {"VCPU": units}}
            assert at_provider["allocations"][consumer]["resources"] == share["resources"]
            assert of_consumer["allocations"][provider]["resources"] == share["resources"]
            assert of_project["usages"]["INSTANCE"]["VCPU"] == units
            found = client.get("/allocation_candidates?resources=VCPU:1").json()
            used = found["provider_summaries"][provider]["resources"]["VCPU"]["used"]
            assert used == units
            assert reads.by("standby") >= len(READS)
            assert reads.by("primary") == 0
