# SPDX-License-Identifier: Apache-2.0
"""`treeclaim load`: a file is applied once, and again without effect; bad files are explained."""

import pytest

from tests.service import InProcess, WithoutExtension
from treeclaim.client import Client
from treeclaim.client.errors import UnsupportedFeatureError
from treeclaim.client.loading import apply_plan, apply_topology, make_plan
from treeclaim.client.provider_batches import Action
from treeclaim.client.topology.file import TopologyError, parse_topology


@pytest.fixture
def client(fresh_service):
    """The package's client, in process."""
    return Client(adapter=InProcess(fresh_service()))


def topology(text):
    return parse_topology(text, "file")


def test_a_server_without_the_extension_is_refused_before_anything_is_sent(client):
    without = Client(adapter=WithoutExtension(client._adapter))
    with pytest.raises(UnsupportedFeatureError, match="needs treeclaim"):
        apply_topology(without, topology("providers: [{name: a}]"))
    assert client._adapter.sent == []


def test_trees_are_written_atomically_and_independently(client):
    text = """
providers:
  - {name: a, children: [{name: a-1}]}
  - {name: b, children: [{name: b-1, inventories: {VCPU: 8}}, {name: b-2}]}
  - {name: c}
"""
    plan = make_plan(client, topology(text))
    client.call("POST", "/resource_providers", json={"name": "b-1"})
    promised = apply_plan(client, plan, dry_run=True)
    assert len(client.providers()) == 1
    outcome = apply_plan(client, plan)
    assert outcome.list_names(Action.CREATE) == ["a", "a-1", "c"]
    assert promised.list_names(Action.CREATE) == outcome.list_names(Action.CREATE)
    assert promised.refusal_texts == outcome.refusal_texts
    refused = [line.partition(":") for line in outcome.refusal_texts]
    assert [name for name, _, _ in refused] == ["b (line 4)", "b-1 (line 4)", "b-2 (line 4)"]
    assert "409" in refused[1][2]
    assert "as a whole" in refused[0][2]
    assert {row["name"] for row in client.providers()} == {"a", "a-1", "b-1", "c"}


def test_trees_beyond_the_batch_size_are_loaded(client):
    text = """
providers:
  - {name: large, children: [{name: "child-{n}", count: 1100, traits: [CUSTOM_X]}]}
  - {name: "host-{n}", count: 1200, aggregates: [g], children: [{name: "{parent}-numa"}]}
"""
    planned = topology(text)
    outcome = apply_topology(client, planned)
    assert (len(outcome.list_names(Action.CREATE)), outcome.refusal_texts) == (1101 + 2400, [])
    assert len(apply_topology(client, planned).list_names(Action.KEEP)) == 1101 + 2400


ALL_RESERVED = "providers: [{name: a, inventories: {VCPU: {total: 8, reserved: 8}}}]"


def test_all_of_an_inventory_may_be_reserved(client):
    apply_topology(client, topology("providers: [{name: a, inventories: {VCPU: 8}}]"))
    for text in (ALL_RESERVED, ALL_RESERVED.replace("total: 8, ", "")):
        planned = topology(text)
        assert not apply_topology(client, planned).refusal_texts
        assert apply_topology(client, planned).list_names(Action.KEEP) == ["a"]
    (a,) = client.providers(name="a")
    held = client.get(f"/resource_providers/{a['uuid']}/inventories")["inventories"]["VCPU"]
    assert (held["total"], held["reserved"]) == (8, 8)
    too_much = "providers: [{name: a, inventories: {VCPU: {reserved: 9}}}]"
    (refused,) = apply_topology(client, topology(too_much)).refusal_texts
    assert refused.startswith("a (line 1): ")


def test_field_that_returns_to_its_default_is_shown_with_both_values(client):
    text = "providers: [{name: a, inventories: {VCPU: {total: 8, allocation_ratio: RATIO}}}]"
    apply_topology(client, topology(text.replace("RATIO", "4.0")))
    (change,) = make_plan(client, topology(text.replace("RATIO", "1.0"))).changes
    assert [str(field) for field in change.format_differences({})] == [
        "~ inventories.VCPU.allocation_ratio: 4.0 → 1.0"
    ]


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


def test_deletions_run_last_with_children_before_parents(client):
    apply_topology(client, topology(FAMILY))
    uuids = {row["uuid"]: row["name"] for row in client.providers()}
    planned = topology(SMALLER)
    plan = make_plan(client, planned, prune=True)
    assert [change.after.name for change in plan.changes if change.wanted_state is None] == [
        "last",
        "below",
        "going",
    ]
    client._adapter.sent.clear()
    outcome = apply_plan(client, plan)
    assert not outcome.refusal_texts
    assert outcome.list_names(Action.DELETE) == ["last", "below", "going"]
    written = [(method, path) for method, path in client._adapter.sent if method != "GET"]
    removed = [uuids[path.rpartition("/")[2]] for _, path in written[-3:]]
    assert removed == ["last", "below", "going"]
    again = apply_topology(client, planned, prune=True)
    assert {change.action for change in again.applied_changes} == {Action.KEEP}
    assert set(again.list_names(Action.KEEP)) == {"staying", "top", "new", "newer"}


def test_cycle_of_parents_is_reported_beside_other_errors(client):
    text = """
providers:
  - {name: a, parent: b}
  - {name: b, parent: A3C4C0B8-0000-4000-8000-000000000001}
  - {name: c, uuid: a3c4c0b8-0000-4000-8000-000000000001, parent: a}
  - {name: below, parent: c}
  - {name: self, parent: self}
  - {name: twice}
  - {name: twice, traits: [lower]}
"""
    with pytest.raises(TopologyError) as caught:
        make_plan(client, topology(text))
    problems = caught.value.problems
    assert [(problem.line, problem.text.split(":")[0]) for problem in problems] == [
        (3, "'a' would be in or below a cycle of parents"),
        (4, "'b' would be in or below a cycle of parents"),
        (5, "'c' would be in or below a cycle of parents"),
        (6, "'below' would be in or below a cycle of parents"),
        (7, "'self' would be in or below a cycle of parents"),
        (9, "name 'twice' is that of line 8 too"),
        (9, "traits"),
    ]


def test_concurrent_changes_are_kept(client):
    """The provider's generation changes twice between reading and writing."""
    apply_topology(client, topology("providers: [{name: a, traits: [CUSTOM_OLD]}]"))
    rival = Client(adapter=InProcess(client._adapter._http))
    changes = ["CUSTOM_OTHER_1", "CUSTOM_OTHER_2"]

    def change(method, path):
        if (method, path) == ("POST", "/treeclaim/providers") and changes:
            text = f"providers: [{{name: a, traits: [{changes.pop()}]}}]"
            apply_topology(rival, topology(text))

    client._adapter.before = change
    apply_topology(client, topology("providers: [{name: a, traits: [CUSTOM_NEW]}]"))
    (row,) = client.provider_states(["traits"])
    foreign = {"CUSTOM_OTHER_1", "CUSTOM_OTHER_2"}
    assert set(row["traits"]) == {"CUSTOM_NEW", "CUSTOM_OLD", *foreign}
