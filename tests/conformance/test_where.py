# SPDX-License-Identifier: Apache-2.0
"""Conditions on attributes, over HTTP (contract page 102, section 1)."""

import uuid

import pytest

from tests.service import client_of, make_application

DEVICES = "placement 1.39, treeclaim 1.0"
BEFORE = "placement 1.39"
_NAMESPACE = uuid.UUID(int=102)

# name: parent, inventories, traits, attributes
WORLD = {
    "one": (None, {"VCPU": 8}, [], {"rack": 1, "retired": False}),
    "one_a": ("one", {"VGPU": 2}, [], {"mem_gib": 80, "driver": "570.86.10", "node": 0}),
    "one_b": ("one", {"VGPU": 2}, [], {"mem_gib": 40, "driver": "565.1", "node": 1}),
    "one_nic": ("one", {"SRIOV_NET_VF": 4}, [], {"node": 0}),
    "two": (None, {"VCPU": 8}, [], {"rack": 2, "retired": True}),
    "two_a": ("two", {"VGPU": 2}, [], {"mem_gib": 80, "ecc": True, "node": 1}),
    "two_nic": ("two", {"SRIOV_NET_VF": 4}, [], {"node": "1"}),
    "pool": (None, {"DISK_GB": 100}, ["MISC_SHARES_VIA_AGGREGATE"], {"ssd": True}),
}
CARDS = ("one_a", "one_b", "two_a")


def uuid_of(name):
    return str(uuid.uuid5(_NAMESPACE, name))


NAMES = {uuid_of(name): name for name in WORLD}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A client of a service that holds the world."""
    with client_of(make_application(tmp_path_factory.mktemp("where"))) as client:
        client.headers["OpenStack-API-Version"] = DEVICES
        for name, (parent, stock, traits, attributes) in WORLD.items():
            body = {"name": name, "uuid": uuid_of(name)}
            body["parent_provider_uuid"] = parent and uuid_of(parent)
            assert client.post("/resource_providers", json=body).is_success
            path = f"/resource_providers/{uuid_of(name)}"
            put(client, path, "inventories", {one: {"total": n} for one, n in stock.items()})
            put(client, path, "traits", traits)
            if parent is None:
                put(client, path, "aggregates", [uuid_of("all")])
            put(client, f"/treeclaim/providers/{uuid_of(name)}", "attributes", attributes)
        yield client


def put(client, path, part, value):
    provider = f"/resource_providers/{path.rpartition('/')[2]}"
    generation = client.get(provider).json()["generation"]
    body = {part: value, "resource_provider_generation": generation}
    answer = client.put(f"{path}/{part}", json=body)
    assert answer.is_success, answer.text


def ask(service, *pairs, path="/allocation_candidates", version=DEVICES):
    return service.get(path, params=list(pairs), headers={"OpenStack-API-Version": version})


def found(service, *pairs):
    """The providers of each candidate, by suffix."""
    answer = ask(service, *pairs)
    assert answer.status_code == 200, answer.text
    return [
        {suffix: [NAMES[one] for one in some] for suffix, some in request["mappings"].items()}
        for request in answer.json()["allocation_requests"]
    ]


def cards(service, *pairs):
    """The cards that candidates use."""
    return sorted(one["_G"][0] for one in found(service, ("resources_G", "VGPU:1"), *pairs))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("mem_gib == 80", ["one_a", "two_a"]),
        ("mem_gib>40 and not ecc", ["one_a"]),
        ("driver >= v570", ["one_a"]),
        ("driver < v570.86.11", ["one_a", "one_b"]),
        ("not driver >= v0", ["two_a"]),
        ("node in (1, 'x')", ["one_b", "two_a"]),
        ("ecc", ["two_a"]),
        ("not exists ecc", ["one_a", "one_b"]),
        ("nobody_has_it == 1", []),
        ("nobody_has_it != 1 or true_blue", []),
    ],
)
def test_providers_of_a_group_satisfy_its_expression(service, expression, expected):
    assert cards(service, ("where_G", expression)) == expected


def test_all_expressions_of_a_group_hold(service):
    assert cards(service, ("where_G", "mem_gib == 80"), ("where_G", "exists driver")) == ["one_a"]


def test_the_unsuffixed_group_is_judged_provider_by_provider(service):
    asked = ("resources", "VCPU:1,VGPU:1")
    assert found(service, asked, ("where", "mem_gib == 80")) == []
    both = found(service, asked, ("where", "mem_gib == 80 or rack == 1"))
    assert both == [{"": ["one", "one_a"]}]


def test_so_are_sharing_providers(service):
    asked = ("resources", "VCPU:1,DISK_GB:1")
    assert len(found(service, asked)) == 2
    assert found(service, asked, ("where", "exists rack")) == []
    assert found(service, asked, ("where", "ssd or rack == 2")) == [{"": ["two", "pool"]}]


def test_a_group_without_resources_has_an_expression(service):
    pairs = ("where_R", "rack == 2"), ("same_subtree", "_R,_G")
    assert cards(service, *pairs) == ["two_a"]


def test_the_root_satisfies_an_expression(service):
    assert cards(service, ("root_where", "not retired")) == ["one_a", "one_b"]


PAIR = ("resources_G", "VGPU:1"), ("resources_N", "SRIOV_NET_VF:1"), ("group_policy", "none")


def test_groups_match_in_an_attribute_of_the_same_type(service):
    assert [one["_G"] for one in found(service, *PAIR, ("match", "node:_G:_N"))] == [["one_a"]]


def test_groups_differ_in_an_attribute(service):
    differing = [one["_G"] for one in found(service, *PAIR, ("distinct", "node:_G:_N"))]
    assert differing == [["one_b"], ["two_a"]]
    assert found(service, *PAIR, ("distinct", "mem_gib:_G:_N")) == []
    assert found(service, *PAIR, ("match", "node:_G:_N"), ("distinct", "node:_N:_G")) == []


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("most:mem_gib:_G", [("one_a", 1), ("two_a", 1), ("one_b", 0)]),
        ("least:mem_gib:_G", [("one_b", 1), ("one_a", 0), ("two_a", 0)]),
        ("most:driver:_G", [("one_a", 0), ("one_b", 0), ("two_a", 0)]),
    ],
)
def test_candidates_are_ordered_by_an_attribute(service, term, expected):
    answer = ask(service, ("resources_G", "VGPU:1"), ("order_by", term)).json()
    order = [NAMES[one["mappings"]["_G"][0]] for one in answer["allocation_requests"]]
    assert list(zip(order, answer["scores"], strict=True)) == expected


@pytest.mark.parametrize(
    ("expression", "column"),
    [("", 1), ("a ==", 5), ("a = 1", 3), ("a == 1and b", 6), ("a < 'x'", 5), ("é", 1)],
)
@pytest.mark.parametrize("name", ["where_G", "where", "root_where"])
def test_an_error_tells_the_column(service, name, expression, column):
    pairs = [("resources_G", "VGPU:1"), ("resources", "VCPU:1"), (name, expression)]
    answer = ask(service, *pairs)
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["code"] == "placement.query.bad_value"
    assert f"column {column}." in error["detail"]
    assert name in error["detail"]


def test_repeated_root_where_all_apply(service):
    assert cards(service, ("root_where", "not retired"), ("root_where", "retired")) == []
    twice = [("root_where", "not retired"), ("root_where", "not retired")]
    assert cards(service, *twice) == ["one_a", "one_b"]


@pytest.mark.parametrize(
    "value",
    ["", "node", "node:_G", "node:_G:_G", "node:_G:_X", "node:_G:", "Node:_G:_N", "in:_G:_N"],
)
@pytest.mark.parametrize("name", ["match", "distinct"])
def test_lists_that_cannot_be_read_are_refused(service, name, value):
    answer = ask(service, *PAIR, (name, value))
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["code"] == "placement.query.bad_value"
    assert name in answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    "term", ["most", "most:node", "most:node:_X", "least:node:_G:_N", "most:Node:_G", "most:node:"]
)
def test_terms_that_cannot_be_read_are_refused(service, term):
    answer = ask(service, *PAIR, ("order_by", term))
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["code"] == "placement.query.bad_value"


@pytest.mark.parametrize(
    "pair",
    [
        ("where_G", "ecc"),
        ("root_where", "ecc"),
        ("match", "node:_G:_N"),
        ("distinct", "node:_G:_N"),
        ("order_by", "most:node:_G"),
    ],
    ids=lambda pair: pair[0],
)
def test_versions_before_know_none_of_it(service, pair):
    assert ask(service, *PAIR, pair).status_code == 200
    assert ask(service, *PAIR, pair, version=BEFORE).status_code == 400


def explained(service, *pairs):
    answer = ask(service, *pairs, path="/allocation_candidates/explain")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_explanation_tells_expressions_and_what_providers_have(service):
    told = explained(service, ("resources_G", "VGPU:1"), ("where_G", "mem_gib == 96 or ecc == 1"))
    step = told["funnel"][-1]
    assert (step["reason"], step["group"]) == ("where", "_G")
    assert step["detail"] == {"expression": "mem_gib == 96 or ecc == 1"}
    (one,) = [tree for tree in told["nearest"] if tree["root_provider"]["name"] == "one"]
    (blocked,) = one["blocked_by"]
    assert (blocked["reason"], blocked["detail"]) == ("where", step["detail"])
    shown = {provider["name"]: provider["attributes"] for provider in blocked["providers"]}
    assert shown == {"one_a": {"mem_gib": 80}, "one_b": {"mem_gib": 40}}
    assert told["advice"] == ["Without where_G=mem_gib == 96 or ecc == 1 2 trees would match."]


def test_an_explanation_tells_of_the_root(service):
    told = explained(service, ("resources", "VCPU:1"), ("root_where", "rack == 3"))
    assert told["funnel"][0]["reason"] == "root_where"
    (one,) = [tree for tree in told["nearest"] if tree["root_provider"]["name"] == "one"]
    (blocked,) = [block for block in one["blocked_by"] if block["reason"] == "root_where"]
    assert blocked["providers"] == [
        {"uuid": uuid_of("one"), "name": "one", "attributes": {"rack": 1}}
    ]


@pytest.mark.slow
def test_an_explanation_tells_lists(service):
    pairs = ("where_G", "node == 1"), ("match", "node:_G:_N")
    told = explained(service, *PAIR, *pairs)
    assert told["feasible"] is False
    detail = {"attribute": "node", "groups": ["_G", "_N"]}
    assert [step["detail"] for step in told["funnel"] if step["reason"] == "match"] == [detail]
    (two,) = [tree for tree in told["nearest"] if tree["root_provider"]["name"] == "two"]
    (blocked,) = two["blocked_by"]
    assert (blocked["reason"], blocked["detail"]) == ("match", detail)
    shown = {provider["name"]: provider["attributes"] for provider in blocked["providers"]}
    assert shown == {"two_a": {"node": 1}, "two_nic": {"node": "1"}}
    told = explained(service, *PAIR, ("where_G", "node == 0"), ("distinct", "node:_N:_G"))
    reasons = {step["reason"] for step in told["funnel"]}
    assert "distinct" in reasons


def test_an_explanation_shows_all_that_groups_without_resources_may_be(service):
    bare = ("where_A", "exists node"), ("where_B", "exists node"), ("same_subtree", "_A,_B,_G")
    told = explained(service, ("resources_G", "VGPU:1"), *bare, ("match", "ssd:_A:_B"))
    (one,) = [tree for tree in told["nearest"] if tree["root_provider"]["name"] == "one"]
    (blocked,) = [block for block in one["blocked_by"] if block["reason"] == "match"]
    assert [provider["name"] for provider in blocked["providers"]] == [
        "one",
        "one_a",
        "one_b",
        "one_nic",
    ]
    assert {str(provider["attributes"]) for provider in blocked["providers"]} == {"{}"}


def test_capacity_and_placements_keep_to_it(service):
    query = "resources_G=VGPU:1&where_G=mem_gib%20==%2080"
    answer = service.post("/treeclaim/capacity", json={"requests": {"a": query}})
    assert answer.json()["capacity"]["a"]["fits"] == 4, answer.text
    query = "resources_G=VGPU:1&resources_N=SRIOV_NET_VF:1&match=node:_G:_N"
    body = {
        "requests": [
            {
                "alternatives": [query],
                "consumers": [str(uuid.UUID(int=number)) for number in range(1, 4)],
                "project_id": "project",
                "user_id": "user",
                "consumer_type": "INSTANCE",
            }
        ],
        "partial": True,
        "dry_run": True,
    }
    answer = service.post("/treeclaim/placements", json=body)
    assert answer.is_success, answer.text
    assert uuid_of("two") not in answer.text
    assert answer.text.count(uuid_of("one_a")) >= 2
    assert uuid_of("one_b") not in answer.text


def test_a_change_of_attributes_changes_what_is_found(service):
    path = f"/treeclaim/providers/{uuid_of('two_nic')}"
    pairs = *PAIR, ("match", "node:_G:_N")
    assert [one["_G"] for one in found(service, *pairs)] == [["one_a"]]
    put(service, path, "attributes", {"node": 1})
    try:
        assert [one["_G"] for one in found(service, *pairs)] == [["one_a"], ["two_a"]]
    finally:
        put(service, path, "attributes", {"node": "1"})
    assert [one["_G"] for one in found(service, *pairs)] == [["one_a"]]
