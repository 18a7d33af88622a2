# SPDX-License-Identifier: Apache-2.0
"""A list that was kept is the list that would be made: after any write, and for every way to ask."""

import pytest

from tests.service import client_of, make_application

MANY = 12


@pytest.fixture
def client(tmp_path):
    """A client of a service with more providers than a short list has."""
    found = client_of(make_application(tmp_path))
    for number in range(MANY):
        made = found.post("/resource_providers", json={"name": f"host-{number}"})
        assert made.status_code == 200
    return found


def listed(client, query="", version="1.39"):
    """The list, with the time of its last change."""
    headers = {"OpenStack-API-Version": f"placement {version}"}
    answer = client.get(f"/resource_providers{query}", headers=headers)
    assert answer.status_code == 200
    return answer.json()["resource_providers"], answer.headers.get("last-modified")


def test_repeated_list_is_the_same(client):
    result = listed(client)
    assert len(result[0]) == MANY
    assert listed(client) == result
    assert result[1] is not None


def test_list_shows_each_earlier_write(client):
    for step in range(3):
        before, _ = listed(client)
        host = before[0]["uuid"]
        client.put(f"/resource_providers/{host}", json={"name": f"renamed-{step}"})
        assert {one["name"] for one in listed(client)[0]} >= {f"renamed-{step}"}
        client.post("/resource_providers", json={"name": f"another-{step}"})
        assert len(listed(client)[0]) == len(before) + 1


def test_each_version_and_query_has_its_own_list(client):
    whole, _ = listed(client)
    old, changed = listed(client, version="1.0")
    assert changed is None
    assert "parent_provider_uuid" in whole[0]
    assert "parent_provider_uuid" not in old[0]
    (only,), _ = listed(client, f"?name={whole[3]['name']}")
    assert only == whole[3]
    assert listed(client, f"?in_tree={whole[3]['uuid']}")[0] == [only]
    assert listed(client, "?name=nobody")[0] == []
    assert listed(client)[0] == whole
