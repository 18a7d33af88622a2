# SPDX-License-Identifier: Apache-2.0
"""The largest batch: 1,000 consumers in one call, and all of them are there (page 98, section 4)."""

import uuid
from collections import Counter

import pytest

from tests.bodies import add_hosts
from tests.databases import EACH_DATABASE, empty_database
from tests.service import client_of, schema_on, start_on

VERSION = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
OWNER = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
CONSUMERS = 1_000
HOSTS = 60
MOST = 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_a_full_batch_is_placed_and_read_back(kind, tmp_path):
    consumers = [str(uuid.uuid4()) for _ in range(CONSUMERS)]
    request = {
        "alternatives": ["resources=VCPU:2&order_by=spread"],
        "consumers": consumers,
        **OWNER,
    }
    rules = [{"domains": "tree", "max_per_domain": MOST}]
    body = {"requests": [request], "rules": rules}
    with empty_database(kind, tmp_path) as url:
        schema_on(url)
        with start_on(url, tmp_path) as application, client_of(application) as client:
            client.headers.update(VERSION)
            # Each has room for some more than the rule allows.
            hosts = (str(uuid.UUID(int=number + 1)) for number in range(HOSTS))
            add_hosts(client, *hosts, VCPU=2 * MOST + 2)
            answer = client.post("/treeclaim/placements", json=body)
            assert answer.status_code == 201, answer.text
            placements = answer.json()["placements"]
            assert [placement["consumer"] for placement in placements] == consumers
            assert max(hosts_of(placements).values()) <= MOST
            assert held(client) == {
                placement["consumer"]: placement["allocations"] for placement in placements
            }
            again = client.post("/treeclaim/placements", json=body)
            assert again.status_code == 200
            assert hosts_of(again.json()["placements"]) == hosts_of(placements)
            beyond = body | {
                "requests": [request | {"consumers": [*consumers, str(uuid.uuid4())]}]
            }
            assert client.post("/treeclaim/placements", json=beyond).status_code == 400


def hosts_of(placements):
    """Return the number of consumers on each host."""
    return Counter(next(iter(placement["allocations"])) for placement in placements)


def held(client):
    """Return the allocations of each consumer, read page by page."""
    amounts, path = {}, "/treeclaim/allocations?limit=400"
    while path:
        page = client.get(path).json()
        for consumer in page["consumers"]:
            amounts[consumer["uuid"]] = {
                provider: {"resources": part["resources"]}
                for provider, part in consumer["allocations"].items()
            }
        path = next((link["href"] for link in page["links"] if link["rel"] == "next"), None)
    return amounts
