# SPDX-License-Identifier: Apache-2.0
"""`treeclaim load`: a file is applied once, and again without effect; bad files are explained."""

import uuid

import pytest

from tests.paths import EXAMPLE
from tests.service import InProcess
from treeclaim.client import Client, ClientError
from treeclaim.client.errors import UnsupportedFeatureError
from treeclaim.client.loading.apply import apply_plan, apply_topology
from treeclaim.client.loading.plan import make_plan
from treeclaim.client.states import read_parts
from treeclaim.client.topology import TopologyError, read_topology
from treeclaim.model.names import aggregate_uuid
from treeclaim.model.parts import ATTRIBUTES


@pytest.fixture
def client(fresh_service):
    """The package's client, in process."""
    return Client(transport=InProcess(fresh_service()))


def topology(tmp_path, text):
    path = tmp_path / "topology.yaml"
    path.write_text(text)
    return read_topology(path)


def test_the_example_is_loaded_once_and_unchanged_the_second_time(client):
    planned = read_topology(EXAMPLE)
    first = apply_topology(client, planned)
    assert len(first.created) == len(planned.providers) == len(client.providers())
    second = apply_topology(client, planned)
    assert len(second.unchanged) == len(planned.providers)
    assert not second.created
    assert not second.updated


def test_what_differs_is_changed_and_the_rest_is_left_alone(client, tmp_path):
    apply_topology(client, topology(tmp_path, "providers: [{name: a, inventories: {VCPU: 8}}]"))
    changed = """
providers:
  - {name: b}
  - {name: a, inventories: {VCPU: {total: 8, reserved: 2}}, traits: [CUSTOM_X], aggregates: [g]}
"""
    outcome = apply_topology(client, topology(tmp_path, changed))
    assert (outcome.created, outcome.updated) == (["b"], ["a"])
    (a,) = client.providers(name="a")
    path = f"/resource_providers/{a['uuid']}"
    assert client.get(f"{path}/inventories")["inventories"]["VCPU"]["reserved"] == 2
    assert client.get(f"{path}/traits")["traits"] == ["CUSTOM_X"]
    assert client.get(f"{path}/aggregates")["aggregates"] == [aggregate_uuid("g")]


def test_a_provider_is_moved_to_the_parent_that_the_file_gives_it(client, tmp_path):
    apply_topology(client, topology(tmp_path, "providers: [{name: a}, {name: b}]"))
    apply_topology(client, topology(tmp_path, "providers: [{name: a, children: [{name: b}]}]"))
    (a,), (b,) = client.providers(name="a"), client.providers(name="b")
    assert b["parent_provider_uuid"] == a["uuid"]


def test_attributes_are_written_one_provider_at_a_time_where_a_call_for_many_is_refused(
    client, tmp_path
):
    client._transport.before = refuse_bulk
    apply_topology(
        client,
        topology(tmp_path, "providers: [{name: a, attributes: {gib: 80}, traits: [CUSTOM_A]}]"),
    )
    (a,) = client.providers(name="a")
    assert read_parts(client, a["uuid"], [ATTRIBUTES]) == {"attributes": {"gib": 80}}


def refuse_bulk(method, path):
    """As a server does that finds something wrong with some provider."""
    if (method, path) == ("POST", "/treeclaim/providers"):
        raise ClientError("refused", status=400)


def test_a_file_with_attributes_needs_a_server_that_has_them(client, tmp_path):
    planned = topology(tmp_path, "providers: [{name: a, attributes: {gib: 80}}]")
    with pytest.raises(UnsupportedFeatureError, match=r"attributes needs treeclaim 1\.0"):
        apply_topology(client.limited_to(38), planned)


def test_a_plan_changes_nothing(client):
    plan = make_plan(client, read_topology(EXAMPLE))
    assert len(plan.changes) == len(read_topology(EXAMPLE).providers)
    assert client.providers() == []


def test_a_server_that_applies_in_bulk_is_sent_many_providers_at_once(client, tmp_path):
    hosts = "".join(
        f"  - name: host-{number}\n    traits: [CUSTOM_X]\n    aggregates: [g]\n"
        "    inventories: {VCPU: 8}\n    children: [{name: numa-%d, inventories: {DISK_GB: 1}}]\n"
        % number
        for number in range(120)
    )
    planned = topology(tmp_path, f"providers:\n{hosts}")
    transport = client._transport
    transport.sent.clear()
    outcome = apply_topology(client, planned)
    assert len(outcome.created) == 240
    written = [call for call in transport.sent if call[0] != "GET"]
    named = ("POST", "/treeclaim/aggregates/names")
    bulk = ("POST", "/treeclaim/providers")
    assert written == [("PUT", "/traits/CUSTOM_X"), bulk, bulk, named]
    assert len(apply_topology(client, planned).unchanged) == 240


def test_what_is_refused_in_bulk_is_done_one_by_one(client, tmp_path):
    planned = topology(
        tmp_path, "providers: [{name: a}, {name: b, inventories: {VCPU: 8}}, {name: c}]"
    )
    plan = make_plan(client, planned)
    client.call("POST", "/resource_providers", json={"name": "b"})
    outcome = apply_plan(client, plan)
    assert outcome.created == ["a", "c"]
    (refusal,) = outcome.refused
    assert refusal.startswith("b (line 1): ")


def test_a_server_without_the_extension_is_sent_single_calls(client, tmp_path):
    older = client.limited_to(38)
    outcome = apply_topology(older, topology(tmp_path, "providers: [{name: a}, {name: b}]"))
    assert outcome.created == ["a", "b"]
    assert ("POST", "/treeclaim/providers") not in client._transport.sent


ALL_RESERVED = "providers: [{name: a, inventories: {VCPU: {total: 8, reserved: 8}}}]"


@pytest.mark.parametrize("minor", [26, 39])
def test_all_of_an_inventory_may_be_reserved(client, tmp_path, minor):
    client = client.limited_to(minor)
    apply_topology(client, topology(tmp_path, "providers: [{name: a, inventories: {VCPU: 8}}]"))
    for text in (ALL_RESERVED, ALL_RESERVED.replace("total: 8, ", "")):
        planned = topology(tmp_path, text)
        assert not apply_topology(client, planned).refused
        assert apply_topology(client, planned).unchanged == ["a"]
    (a,) = client.providers(name="a")
    held = client.get(f"/resource_providers/{a['uuid']}/inventories")["inventories"]["VCPU"]
    assert (held["total"], held["reserved"]) == (8, 8)
    more = "providers: [{name: a, inventories: {VCPU: {reserved: 9}}}]"
    with pytest.raises(TopologyError, match="9 would be reserved"):
        apply_topology(client, topology(tmp_path, more))


@pytest.mark.parametrize("amounts", ["total: 8, reserved: 8", "total: 4, allocation_ratio: 0.1"])
def test_what_an_older_service_would_refuse_is_told_before_anything_is_written(
    client, tmp_path, amounts
):
    text = f"providers: [{{name: b}}, {{name: a, inventories: {{VCPU: {{{amounts}}}}}}}]"
    planned = topology(tmp_path, text)
    with pytest.raises(TopologyError, match=r"before 1\.26"):
        apply_topology(client.limited_to(25), planned)
    assert client.providers() == []
    assert not apply_topology(client.limited_to(26), planned).refused


FAMILY = """
providers:
  - {name: top, children: [{name: going, children: [{name: below, children: [{name: last}]},
                                                    {name: staying}]}]}
  - {name: other}
"""
SMALLER = """
providers:
  - {name: staying, parent: other}
  - {name: top, children: []}
  - {name: new, parent: newer}
  - {name: newer, parent: other}
"""


@pytest.mark.parametrize("minor", [38, 39])
def test_what_goes_goes_last_and_children_before_their_parents(client, tmp_path, minor):
    apply_topology(client, topology(tmp_path, FAMILY))
    uuids = {row["uuid"]: row["name"] for row in client.providers()}
    planned = topology(tmp_path, SMALLER)
    plan = make_plan(client.limited_to(minor), planned, prune=True)
    assert [change.name for change in plan.changes if change.after is None] == [
        "last",
        "below",
        "going",
    ]
    client._transport.sent.clear()
    outcome = apply_plan(client.limited_to(minor), plan)
    assert not outcome.refused
    assert outcome.deleted == ["last", "below", "going"]
    written = [(method, path) for method, path in client._transport.sent if method != "GET"]
    removed = [uuids[path.rpartition("/")[2]] for _, path in written[-3:]]
    assert removed == ["last", "below", "going"]
    again = apply_topology(client, planned, prune=True)
    assert set(again.unchanged) == {"staying", "top", "new", "newer"}
    assert not (again.created or again.updated or again.deleted)


def test_what_the_service_takes_for_no_uuid_is_a_word():
    word = "1_" + "1" * 30
    assert uuid.UUID(word), "Python reads digits as `int` does, with underscores in them"
    assert aggregate_uuid(word) == aggregate_uuid(aggregate_uuid(word)) != str(uuid.UUID(word))
