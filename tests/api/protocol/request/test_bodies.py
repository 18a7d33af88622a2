# SPDX-License-Identifier: Apache-2.0
"""Refusals of bodies of the extension name the place, the value, and the value that is expected."""

import json

import pytest

from tests.api.raw import send
from tests.service import make_application
from treeclaim.api.protocol.request.bodies import BodyReader
from treeclaim.api.routes import OPERATIONS

UUID = "10000000-0000-4000-8000-000000000001"
VERSION = "1.39, treeclaim 1.0"
QUERY = "resources=VCPU:1"
REQUEST = {
    "alternatives": [QUERY],
    "consumers": [UUID],
    "project_id": "p",
    "user_id": "u",
    "consumer_type": "INSTANCE",
}


def placing(rule=None, **members):
    """A call that places a consumer, with other members of its request, or a rule."""
    rules = [{"domains": "tree", "max_skew": 1} | rule] if rule else []
    return {"requests": [REQUEST | members], "rules": rules}


def entry(**members):
    """A call that writes a provider."""
    return {"providers": [{"uuid": UUID} | members]}


CLAIM = {
    "allocations": {},
    "project_id": "p",
    "user_id": "u",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}
CONSUMES = {"provider": UUID, "resource_class": "VCPU", "amount": 1}
MIX = {"requests": {"a": {"query": QUERY, "weight": 0}}}
REFUSED = [
    (
        "placements",
        placing({"domains": ["rack-a"]}),
        'rules[0].domains[0]: "rack-a" is not the UUID of an aggregate',
    ),
    (
        "placements",
        placing({"domains": "row"}),
        "rules[0].domains: \"row\" is neither 'tree' nor a list of aggregates",
    ),
    (
        "placements",
        placing({"max_per_domain": 2}),
        "rules[0]: one of 'max_per_domain', 'max_skew' and 'same_domain' is required",
    ),
    ("placements", placing({"max_skew": 0}), "rules[0].max_skew: 0 is less than 1"),
    (
        "placements",
        placing({"with": ["x"]}),
        'rules[0].with[0]: "x" is not the UUID of a consumer',
    ),
    (
        "placements",
        placing(consumer=UUID),
        "requests[0]: unknown 'consumer'; did you mean 'consumers'? Known are",
    ),
    (
        "placements",
        placing(consumer_type="a\n"),
        'requests[0].consumer_type: "a\\n" is not a name of capital letters',
    ),
    (
        "placements",
        placing(consumer_type=None),
        "requests[0]: 'consumer_type' is null; leave it out",
    ),
    (
        "placements",
        placing(hold={"untill": "x"}),
        "requests[0].hold: unknown 'untill'; did you mean 'until'?",
    ),
    (
        "placements",
        placing(from_holds=[UUID, UUID]),
        "requests[0].from_holds: a hold is named twice",
    ),
    (
        "placements",
        placing(project_id=""),
        "requests[0].project_id: a text of fewer than 1 characters",
    ),
    ("placements", {"requests": []}, "requests: 0 are fewer than 1"),
    ("placements", {}, "'requests' is required"),
    ("placements", [], "a list is not an object"),
    ("capacity", {"requests": {"a": 5}}, "requests.a: 5 is not a text"),
    ("capacity", {"requests": {"a": QUERY}, "limit": 1.5}, "limit: 1.5 is not an integer"),
    ("capacity", {"requests": {"a": QUERY}, "limit": True}, "limit: true is not an integer"),
    ("capacity", {"requests": {"a": QUERY}, "limit": 99_999}, "limit: 99999 is more than 10000"),
    ("candidates", {"alternatives": [QUERY] * 17}, "alternatives: 17 are more than 16"),
    ("survival", {"domains": "tree", "all": 1}, "all: 1 is not true or false"),
    (
        "survival",
        {"domains": "tree", "given": {"place": {"requests": [{"query": QUERY}]}}},
        "given.place.requests[0]: 'amount' is required",
    ),
    ("moves", {"goal": {}}, "goal: 0 goals, and one is expected"),
    ("moves", {"goal": {"leave": False}}, "goal.leave: false is not one of True"),
    (
        "moves",
        {"goal": {"leave": True}, "requests": {UUID: [QUERY], UUID.replace("-", ""): [QUERY]}},
        "requests: a consumer is named twice",
    ),
    (
        "holds",
        {"holds": {UUID: {"note": "x" * 256}}},
        f"holds.{UUID}.note: a text of more than 255 characters",
    ),
    ("requests", {"requests": {"a": [QUERY]}}, 'requests.a: "a" is not a UUID with dashes'),
    ("aggregates/names", {"names": {UUID + "\n": "a"}}, "is not a UUID with dashes"),
    (
        "audit",
        {"living": {"INSTANCE": [UUID, "x"]}},
        "living.INSTANCE[1]: 'x' is not the UUID of a consumer",
    ),
    (
        "audit/repairs",
        {"repairs": [{"kind": "x"}]},
        "repairs[0]: 'x' is not one of 'without_consumer', ",
    ),
    (
        "audit/repairs",
        {"repairs": [{"kind": "broken_root"}]},
        "repairs[0]: 'provider' is required",
    ),
    ("audit/repairs", {"repairs": []}, "repairs: 0 are fewer than 1"),
    ("audit/repairs", {"repairs": [{"kind": "over_capacity", "provider": UUID}]}, "repairs[0]"),
    (
        "audit/repairs",
        {"repairs": [{"kind": "without_provider", "table": "x", "provider_id": 1}]},
        'repairs[0].table: "x" is not one of inventories, ',
    ),
    (
        f"providers/{UUID}/conditions/BROKEN",
        {"effect": "stop"},
        "effect: \"stop\" is not one of 'no_new' or 'leave'",
    ),
    ("mixes/a", MIX, "requests.a.weight: 0 is less than 1"),
    (
        "providers",
        entry(inventories={"VCPU": {"total": 0}}),
        "inventories.VCPU.total: 0 is less than 1",
    ),
    ("providers", entry(inventories={"VCPU": {}}), "inventories.VCPU: 'total' is required"),
    (
        "providers",
        entry(inventory={}),
        "unknown 'inventory'; did you mean 'inventories'? Known are uuid, name,",
    ),
    (
        "providers",
        entry(inventories={"VCPU": {"total": 1, "consumes": [CONSUMES, CONSUMES]}}),
        "inventories.VCPU.consumes: an inventory is named twice",
    ),
    ("providers", entry(traits=[""]), "traits[0]: a text of fewer than 1 characters"),
    ("providers", entry(aggregates=[UUID, UUID]), "aggregates: an aggregate is named twice"),
    (
        "providers",
        entry(attributes={"and": 1}),
        'attributes.and: "and" is not the name of an attribute',
    ),
    (
        "providers",
        entry(attributes={"a": 1.5}),
        "attributes.a: 1.5 is not true, false, an integer",
    ),
    ("providers", {"providers": [{"name": "a"}, {}]}, "'uuid' or 'name' is required"),
    (
        "candidates",
        {
            "alternatives": [QUERY],
            "given": {"providers": [{"uuid": UUID, "conditions": {"a": {"effect": "leave"}}}]},
        },
        'conditions.a: "a" is not a key of 1 to 63 capital letters, digits and _',
    ),
    (
        f"providers/{UUID}/attributes",
        {"resource_provider_generation": 0, "attributes": {"a": ""}},
        'attributes.a: "" is not true, false, an integer',
    ),
    (f"/allocations/{UUID}", CLAIM | {"request": [5]}, "request[0]: 5 is not a text"),
    (
        f"/allocations/{UUID}",
        CLAIM | {"hold": {"untill": None}},
        "hold: unknown 'untill'; did you",
    ),
    ("/allocations", {UUID: CLAIM | {"from_holds": []}}, f"{UUID}.from_holds: 0 are fewer than 1"),
    (f"/allocations/{UUID}", CLAIM | {"tolerates": ["a"]}, 'tolerates[0]: "a" is not a key of'),
    ("flavors", {"flavors": ["m1"]}, 'flavors[0]: "m1" is not an object'),
]


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    application = make_application(tmp_path_factory.mktemp("bodies"))
    host = json.dumps({"name": "host", "uuid": UUID}).encode()
    assert send(application, "POST", "/resource_providers", body=host).status == 200
    return application


@pytest.mark.parametrize(("path", "body", "words"), REFUSED)
def test_refusal_names_place_and_problem(application, path, body, words):
    method = "PUT" if path.startswith(("mixes", "providers/", "/allocations/")) else "POST"
    content = json.dumps(body).encode()
    url = path if path.startswith("/") else f"/treeclaim/{path}"
    answer = send(application, method, url, body=content, version=VERSION)
    assert answer.status == 400
    assert f"JSON does not validate: {words}" in answer.detail or words in answer.detail
    assert "^" not in answer.detail


def test_optional_member_is_not_described_as_null():
    schemas = {
        operation.name: operation.body.schema
        for operation in OPERATIONS
        if isinstance(operation.body, BodyReader)
    }
    movable = schemas["plan_moves"]["properties"]["movable"]["properties"]
    assert movable["projects"]["type"] == "array"
    hold = schemas["place_consumers"]["properties"]["requests"]["items"]["properties"]["hold"]
    assert {"type": "null"} in hold["anyOf"]
    assert "$ref" not in json.dumps(schemas)


@pytest.mark.parametrize(
    ("method", "path", "body", "near"),
    [
        ("GET", "/allocation_candidates?resources=VCPUS:1", None, "VCPU"),
        ("GET", "/allocation_candidates?resources=VCPU:1&preferred=HW_NUMA_ROT", None, "HW_NUMA_ROOT"),
        ("GET", "/treeclaim/totals?resource_class=DISK_BG", None, "DISK_GB"),
        ("GET", "/treeclaim/allocations?resource_class=DISK_BG", None, "DISK_GB"),
        ("POST", "/treeclaim/candidates", {"alternatives": ["resources=VGP:1"]}, "VGPU"),
        ("PUT", "/treeclaim/mixes/a", {"requests": {"a": {"query": "resources=VCPUX:1", "weight": 1}}}, "VCPU"),
        ("POST", "/treeclaim/providers", entry(traits=["HW_NUMA_ROT"]), "HW_NUMA_ROOT"),
        ("POST", "/treeclaim/providers", entry(inventories={"MEMORY": {"total": 1}}), "MEMORY_MB"),
        ("PUT", f"/allocations/{UUID}", CLAIM | {"allocations": {UUID: {"resources": {"VCPUS": 1}}}}, "VCPU"),
    ],
)  # fmt: skip
def test_unknown_name_suggests_the_nearest_with_the_extension(
    application, method, path, body, near
):
    content = b"" if body is None else json.dumps(body).encode()
    path, _, query = path.partition("?")
    answer = send(application, method, path, query=query.encode(), body=content, version=VERSION)
    assert answer.status == 400
    assert answer.detail.endswith(f" Did you mean {near}?")


def test_unknown_name_has_the_words_of_placement_without_the_extension(application):
    query = b"resources=VCPUS:1"
    answer = send(application, "GET", "/allocation_candidates", query=query, version="1.39")
    assert answer.detail.endswith("No such resource class VCPUS.")
