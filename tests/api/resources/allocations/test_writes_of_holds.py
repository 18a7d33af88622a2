# SPDX-License-Identifier: Apache-2.0
"""Holds, draws and kept requests as clients write and see them (contract page 100)."""

import pytest

from tests.service import client_of, make_application

KNOWS = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
HOST = "a0000000-0000-0000-0000-000000000000"
HOLD, TAKER, OTHER = (f"c0000000-0000-0000-0000-{number:012}" for number in range(3))
QUERY = "resources=VCPU:4"


@pytest.fixture
def client(tmp_path):
    """A client of a service with one host of 10 VCPU in steps of two."""
    client = client_of(make_application(tmp_path), **KNOWS)
    client.post("/resource_providers", json={"name": "host", "uuid": HOST})
    stock = {"VCPU": {"total": 10, "step_size": 2}}
    body = {"inventories": stock, "resource_provider_generation": 0}
    assert client.put(f"/resource_providers/{HOST}/inventories", json=body).status_code == 200
    return client


def claim(amount, generation=None, **members):
    """The body of a claim."""
    allocations = {HOST: {"resources": {"VCPU": amount}}} if amount else {}
    body = {
        "allocations": allocations,
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }
    return {**body, **members}


def hold(amount, generation=None, **terms):
    """The body of a hold."""
    body = claim(amount, generation, hold=terms)
    del body["consumer_type"]
    return body


def put(client, consumer, body, status=204):
    """Write; return the first error, if one is expected."""
    answer = client.put(f"/allocations/{consumer}", json=body)
    assert answer.status_code == status, answer.text
    return None if status == 204 else answer.json()["errors"][0]


def get(client, consumer):
    """What a consumer has."""
    return client.get(f"/allocations/{consumer}").json()


def held(client, consumer):
    """How much a consumer has."""
    return get(client, consumer)["allocations"].get(HOST, {}).get("resources", {}).get("VCPU", 0)


def test_what_is_drawn_from_a_commitment_comes_back(client):
    until = "2999-01-01T01:00:00.9+01:00"
    terms = {"until": until, "returns": True, "projects": ["q"], "note": "rack 7 🦆\0"}
    put(client, HOLD, hold(7, **terms))
    put(client, TAKER, claim(4, from_holds=[HOLD], project_id="q"))
    shown = get(client, HOLD)
    assert shown["hold"] == {
        **terms,
        "until": "2999-01-01T00:00:00Z",
        "drawn": {HOST: {"VCPU": 4}},
    }
    assert (held(client, HOLD), shown["consumer_generation"]) == (3, 2)
    assert shown["consumer_type"] == "TREECLAIM_HOLD"
    assert get(client, TAKER)["drawn_from"] == {HOLD: {HOST: {"VCPU": 4}}}
    assert get(client, TAKER)["hold"] is None
    # What was read can be written back.
    put(client, TAKER, get(client, TAKER))
    put(client, HOLD, get(client, HOLD))
    assert get(client, HOLD)["consumer_generation"] == 3
    old = {"openstack-api-version": "placement 1.12"}
    assert client.delete(f"/allocations/{TAKER}", headers=old).status_code == 204
    assert held(client, HOLD) == 7
    assert get(client, HOLD)["hold"]["drawn"] == {}


def test_a_hold_that_is_all_drawn_keeps_its_record(client):
    put(client, HOLD, hold(4, returns=True))
    put(client, TAKER, claim(4, from_holds=[HOLD]))
    old = {"openstack-api-version": "placement 1.39"}
    assert client.get(f"/allocations/{HOLD}", headers=old).json() == {"allocations": {}}
    assert get(client, HOLD)["consumer_generation"] == 2
    refused = put(client, OTHER, claim(8), 409)
    assert refused["conflict"]["kind"] == "over_capacity"
    put(client, HOLD, {**get(client, HOLD), "consumer_generation": None})
    assert get(client, HOLD)["consumer_generation"] == 3
    assert client.delete(f"/allocations/{HOLD}").status_code == 204
    assert client.delete(f"/allocations/{HOLD}").status_code == 404
    assert get(client, TAKER)["drawn_from"] == {}
    assert held(client, TAKER) == 4


def test_who_must_not_draw_is_told_why(client):
    put(client, HOLD, hold(4))
    refused = put(client, TAKER, claim(2, from_holds=[OTHER]), 409)
    assert refused["code"] == "treeclaim.hold"
    assert refused["conflict"] == {"kind": "hold", "uuid": OTHER, "reason": "unknown"}
    refused = put(client, TAKER, claim(2, from_holds=[HOLD], project_id="q"), 409)
    assert refused["conflict"] == {"kind": "hold", "uuid": HOLD, "reason": "project"}
    for wrong in (
        claim(2, from_holds=[TAKER]),
        claim(2, from_holds=[HOLD, HOLD.upper()]),
        claim(2, from_holds=[]),
        hold(2) | {"from_holds": [HOLD]},
        hold(2) | {"consumer_type": "INSTANCE"},
        claim(2, consumer_type="TREECLAIM_HOLD"),
        hold(2, until="2001-01-01T00:00:00Z"),
        hold(2, until="tomorrow"),
        hold(2, note="x" * 256),
        hold(2, projects=["p"] * 65),
        {key: value for key, value in claim(2).items() if key != "consumer_type"},
    ):
        put(client, TAKER, wrong, 400)
    put(client, TAKER, claim(2))
    refused = put(client, TAKER, hold(2, 1), 409)
    assert refused["code"] == "treeclaim.consumer_exists"
    refused = put(client, HOLD, claim(2, 1), 409)
    assert refused["consumers"] == [HOLD]
    old = {"openstack-api-version": "placement 1.39"}
    answer = client.put(f"/allocations/{HOLD}", json=claim(2, 1), headers=old)
    assert answer.status_code == 204
    assert get(client, HOLD)["consumer_type"] == "TREECLAIM_HOLD"


def test_placements_draw_and_make_holds(client):
    made = {"alternatives": [QUERY], "consumers": [HOLD], "project_id": "p", "user_id": "u"}
    body = {"requests": [made | {"hold": {"returns": True}}]}
    assert client.post("/treeclaim/placements", json=body).status_code == 201
    assert get(client, HOLD)["hold"]["returns"] is True
    drawn = made | {"consumers": [TAKER], "consumer_type": "INSTANCE", "from_holds": [HOLD]}
    assert client.post("/treeclaim/placements", json={"requests": [drawn]}).status_code == 201
    assert get(client, TAKER)["drawn_from"] == {HOLD: {HOST: {"VCPU": 4}}}
    # Each call may be repeated, though the hold has nothing any more.
    for again in (body, {"requests": [drawn]}):
        assert client.post("/treeclaim/placements", json=again).status_code == 200
    other = {"requests": [drawn | {"consumers": [OTHER], "from_holds": [OTHER[:-1] + "7"]}]}
    for flags in ({}, {"dry_run": True}, {"partial": True}):
        answer = client.post("/treeclaim/placements", json=other | flags)
        assert answer.status_code == 409
        assert answer.json()["errors"][0]["conflict"]["reason"] == "unknown"


def test_terms_change_and_no_generation_moves(client):
    put(client, HOLD, hold(4, returns=True, note="old"))
    put(client, TAKER, claim(4, from_holds=[HOLD]))
    body = {"holds": {HOLD: {"until": "2999-01-01T00:00:00Z"}, OTHER: {}}}
    answer = client.post("/treeclaim/holds", json=body)
    assert answer.json() == {"updated": 1, "unknown": [OTHER]}
    shown = get(client, HOLD)
    assert shown["hold"]["note"] == "old"
    assert shown["hold"]["until"] == "2999-01-01T00:00:00Z"
    assert shown["consumer_generation"] == 2
    client.post("/treeclaim/holds", json={"holds": {HOLD: {"returns": False}}})
    # Nothing is drawn any more, and it holds nothing: it has ended.
    assert get(client, HOLD)["hold"] is None
    assert get(client, TAKER)["drawn_from"] == {}


def test_a_request_is_kept_and_outlives_its_consumer(client):
    placed = {"alternatives": [QUERY], "consumers": [TAKER], "project_id": "p", "user_id": "u"}
    body = {"requests": [placed | {"consumer_type": "INSTANCE"}]}
    assert client.post("/treeclaim/placements", json=body).status_code == 201
    shown = get(client, TAKER)
    assert (shown["request"], shown["request_valid"]) == ([QUERY], True)
    put(client, TAKER, claim(2, 1))
    assert get(client, TAKER)["request_valid"] is False
    listed = client.get("/treeclaim/allocations?include=requests").json()["consumers"]
    assert [consumer["request"] for consumer in listed] == [[QUERY]]
    client.delete(f"/allocations/{TAKER}")
    assert get(client, TAKER)["request"] == [QUERY]
    put(client, TAKER, claim(4))
    assert get(client, TAKER)["request_valid"] is True
    for wrong in (
        ["resources=NOBODY:1"],
        [f"{QUERY}&from_holds={HOLD}"],
        [],
        [QUERY + "0" * 20000],
    ):
        refused = put(client, TAKER, claim(4, 1, request=wrong), 400)
        assert wrong in ([], None) or "request" in refused["detail"]
    given = {"requests": {TAKER: ["resources=VCPU:6", QUERY], OTHER: None}}
    answer = client.post("/treeclaim/requests", json=given)
    assert answer.json() == {"updated": 1, "unknown": [OTHER]}
    assert get(client, TAKER)["request"] == ["resources=VCPU:6", QUERY]
    put(client, TAKER, claim(4, 1, request=None))
    assert get(client, TAKER)["request"] is None
