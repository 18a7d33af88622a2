# SPDX-License-Identifier: Apache-2.0
"""The client against openstack-placement itself, at each form that its bodies have.

The other service runs as a black box, from a virtual environment of its own that the benchmark uses
too. Where that cannot be made, the tests are skipped and say so.
"""

import uuid

import pytest

from tests.client.hosts import HOST, held, make_host
from tests.peer import openstack_placement_on
from treeclaim.client import Client, ClientError, UnsupportedFeatureError
from treeclaim.client.loading.apply import apply_topology
from treeclaim.client.topology import parse_topology

FORMS = (1, 8, 12, 28, 34, 38, 39)


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def endpoint(peer, tmp_path_factory):
    """The URL of an openstack-placement with one host."""
    folder = tmp_path_factory.mktemp("placement")
    with openstack_placement_on(f"sqlite:///{folder / 'placement.db'}", folder) as (
        url,
        _,
    ):
        with Client(url, "admin") as client:
            make_host(client)
        yield url


@pytest.mark.parametrize("minor", FORMS)
def test_claims_moves_and_releases(endpoint, minor):
    with Client(endpoint, "admin", highest_minor=minor) as client:
        candidate = {"allocations": {HOST: {"resources": {"VCPU": 2}}}}
        if minor >= 10:
            (candidate,) = client.candidates("resources=VCPU:2")["allocation_requests"]
        source, target = str(uuid.uuid4()), str(uuid.uuid4())
        client.claim(source, candidate, project_id="p", user_id="u")
        assert held(client, source) == {HOST: {"VCPU": 2}}
        if minor >= 13:
            client.move(source, target)
            assert held(client, source) == {}
            source = target
        client.release(source)
        assert held(client, source) == {}
        assert client.release(source) is False


def test_what_it_does_not_have_is_refused_before_it_is_sent(endpoint):
    with Client(endpoint, "admin") as client:
        assert client.versions.extension is None
        with pytest.raises(UnsupportedFeatureError, match="can_split needs treeclaim"):
            client.candidates("resources=VCPU:1&can_split=VCPU")
        with pytest.raises(UnsupportedFeatureError, match="explain needs treeclaim"):
            client.explain("resources=VCPU:1")


def test_a_claim_without_room_is_an_error(endpoint):
    with Client(endpoint, "admin") as client, pytest.raises(ClientError, match="409"):
        client.claim(
            str(uuid.uuid4()),
            {"allocations": {HOST: {"resources": {"VCPU": 5}}}},
            project_id="p",
            user_id="u",
        )


def test_a_topology_is_loaded_changed_and_found_unchanged(endpoint):
    text = """
providers:
  - name: loaded-{n}
    count: 3
    traits: [CUSTOM_LOADED]
    aggregates: [rack]
    inventories: {DISK_GB: 10}
    children: [{name: "{parent}_numa", traits: [HW_NUMA_ROOT], inventories: {VCPU: 4}}]
"""
    with Client(endpoint, "admin") as client:
        first = apply_topology(client, parse_topology(text, "text"))
        assert (len(first.created), first.refused) == (6, [])
        assert len(apply_topology(client, parse_topology(text, "text")).unchanged) == 6
        less = "providers: [{name: loaded-1_numa, inventories: {VCPU: 8}}]"
        assert len(apply_topology(client, parse_topology(less, "text")).updated) == 1
        (child,) = client.providers(name="loaded-1_numa")
        path = f"/resource_providers/{child['uuid']}"
        assert client.get(f"{path}/traits")["traits"] == ["HW_NUMA_ROOT"]
        assert child["parent_provider_uuid"] is not None
        gone = "providers: [{name: loaded-1, children: []}]"
        pruned = apply_topology(client, parse_topology(gone, "text"), prune=True)
        assert pruned.deleted == ["loaded-1_numa"]
