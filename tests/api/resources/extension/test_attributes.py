# SPDX-License-Identifier: Apache-2.0
"""Attributes of providers over HTTP (contract page 102, section 1)."""

import json

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.databases import EACH_DATABASE
from tests.service import application_on, client_of, fresh_database_on, start_on
from treeclaim.model.attributes import GREATEST_NUMBER, RESERVED_WORDS

BEFORE = {"openstack-api-version": "placement 1.39"}
EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
HOST, CARD = uuid_of("host"), uuid_of("card")
GOOD = {"mem_gib": 80, "driver": "570.86.10", "ecc": True}
HOSTILE = {
    "emoji": "\N{GRINNING FACE}" * 255,
    "quotes": "'\"`\\ \\u0000 %s {n} ; -- <b>",
    "right_to_left": "\N{RIGHT-TO-LEFT OVERRIDE}\N{HEBREW LETTER ALEF}",
    "beyond": "\U00020000\U0010fffd",
    "lines": "\N{LINE SEPARATOR}\N{ZERO WIDTH SPACE}\xa0",
    "blank": " ",
    "yes": "true",
    "least": -GREATEST_NUMBER,
    "greatest": GREATEST_NUMBER,
    "no": False,
    "zero": 0,
    "one": "1",
    "v100": "v1.2",
    "a" * 63: "x" * 255,
}


def path(uuid=HOST):
    return f"/treeclaim/providers/{uuid}/attributes"


@pytest.fixture(scope="module", params=EACH_DATABASE)
def clients(request, tmp_path_factory):
    """Two services on one database."""
    folders = [tmp_path_factory.mktemp(name) for name in ("database", "one", "other")]
    with (
        fresh_database_on(request.param, folders[0]) as url,
        start_on(url, folders[1]) as one,
        start_on(url, folders[2]) as other,
    ):
        yield client_of(one, **EXTENDED), client_of(other, **EXTENDED)


@pytest.fixture
def client(clients):
    """A client of one of them, with a host that has a card."""
    client = clients[0]
    for uuid in (CARD, HOST):
        client.delete(f"/resource_providers/{uuid}")
    for name, uuid, parent in (("host", HOST, None), ("card", CARD, HOST)):
        body = {"name": name, "uuid": uuid, "parent_provider_uuid": parent}
        assert client.post("/resource_providers", json=body).status_code == 200
    return client


def read(client, uuid=HOST):
    answer = client.get(path(uuid))
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-cache"
    return answer.json()


def put(client, attributes, generation=None, uuid=HOST):
    if generation is None:
        generation = read(client, uuid)["resource_provider_generation"]
    body = {"resource_provider_generation": generation, "attributes": attributes}
    return client.put(path(uuid), json=body)


def typed(attributes):
    """Text in which 1, true and "1" differ."""
    return json.dumps(attributes, sort_keys=True)


def test_a_new_provider_has_none(client):
    assert read(client) == {"resource_provider_generation": 0, "attributes": {}}


def test_what_is_put_is_answered_and_read_by_every_worker(client, clients):
    answer = put(client, GOOD)
    assert answer.status_code == 200, answer.text
    expected = {"resource_provider_generation": 1, "attributes": GOOD}
    for one in clients:
        assert typed(read(one)) == typed(expected) == typed(answer.json())
        assert list(read(one)["attributes"]) == sorted(GOOD)
    assert read(client, CARD)["attributes"] == {}


def test_any_text_and_number_comes_back_as_it_was(client, clients):
    assert put(client, HOSTILE).status_code == 200
    for one in clients:
        assert typed(read(one)["attributes"]) == typed(HOSTILE)


def test_a_put_replaces_all(client):
    put(client, GOOD)
    put(client, {"mem_gib": 40, "numa": 3})
    assert read(client)["attributes"] == {"mem_gib": 40, "numa": 3}
    put(client, {})
    assert read(client) == {"resource_provider_generation": 3, "attributes": {}}


def test_where_nothing_changes_nothing_moves(client):
    put(client, GOOD)
    since = client.get("/treeclaim/changes").json()["cursor"]
    answer = put(client, dict(reversed(GOOD.items())))
    assert answer.json() == {"resource_provider_generation": 1, "attributes": GOOD}
    assert client.get(f"/treeclaim/changes?since={since}").json()["changes"] == []


@pytest.mark.parametrize(("before", "after"), [(1, True), (True, "true"), ("1", 1), (0, False)])
def test_the_same_of_another_type_is_a_change(client, clients, before, after):
    put(client, {"value": before})
    assert put(client, {"value": after}).json()["resource_provider_generation"] == 2
    for one in clients:
        assert typed(read(one)["attributes"]) == typed({"value": after})


def test_a_whole_number_is_an_integer_however_it_is_written(client):
    text = '{"resource_provider_generation": 0, "attributes": {"a": 1.0, "b": 8e1, "c": -0}}'
    headers = {"content-type": "application/json"}
    assert client.put(path(), content=text, headers=headers).status_code == 200
    assert typed(read(client)["attributes"]) == typed({"a": 1, "b": 80, "c": 0})


def test_another_generation_is_a_conflict_as_for_traits(client):
    put(client, GOOD)
    answer = put(client, {}, generation=0)
    assert answer.status_code == 409
    traits = {"resource_provider_generation": 0, "traits": []}
    expected = client.put(f"/resource_providers/{HOST}/traits", json=traits).json()["errors"][0]
    (error,) = answer.json()["errors"]
    assert {**error, "request_id": ""} == {**expected, "request_id": ""}
    assert error["code"] == "placement.concurrent_update"
    assert error["conflict"] == {
        "kind": "provider_generation",
        "uuid": HOST,
        "expected": 1,
        "given": 0,
    }
    assert read(client)["attributes"] == GOOD


@pytest.mark.parametrize("name", [*sorted(RESERVED_WORDS), "A", "1a", "_a", "a-b", "", "a" * 64])
@pytest.mark.parametrize("is_batch", [False, True])
def test_what_is_no_name_is_refused(client, name, is_batch):
    assert_refused(client, {name: 1}, is_batch=is_batch)


VALUES = [1.5, 1e300, None, [], [1], {}, "", "x" * 256, "a\0b", "a\n", "\x7f", "\x85", 2**53]


@pytest.mark.parametrize("value", [*VALUES, -(2**53)], ids=repr)
@pytest.mark.parametrize("is_batch", [False, True])
def test_what_is_no_value_is_refused(client, value, is_batch):
    assert_refused(client, {"value": value}, is_batch=is_batch)


def assert_refused(client, attributes, *, is_batch=False):
    if is_batch:
        batch = {"providers": [{"uuid": HOST, "attributes": attributes}]}
        answer = client.post("/treeclaim/providers", json=batch)
    else:
        answer = put(client, attributes)
    assert answer.status_code == 400, answer.text
    (error,) = answer.json()["errors"]
    assert "JSON does not validate" in error["detail"]
    assert read(client) == {"resource_provider_generation": 0, "attributes": {}}


def test_a_refusal_says_what_would_be_right(client):
    def told(attributes):
        return put(client, attributes).json()["errors"][0]["detail"]

    assert "1.5 is not of type 'boolean', 'integer', 'string'" in told({"a": 1.5})
    assert "None is not of type 'boolean', 'integer', 'string'" in told({"a": None})
    assert f"{2**53} is greater than the maximum of {2**53 - 1}" in told({"a": 2**53})
    assert "'or' does not match any of the regexes" in told({"or": 1})


def test_a_single_surrogate_is_no_text(client):
    text = '{"resource_provider_generation": 0, "attributes": {"a": "\\ud83d"}}'
    headers = {"content-type": "application/json"}
    assert client.put(path(), content=text, headers=headers).status_code == 400


def test_a_provider_has_64_at_most(client):
    most = {f"n{number}": number for number in range(64)}
    assert put(client, most).status_code == 200
    assert read(client)["attributes"] == most
    answer = put(client, most | {"more": 1})
    assert answer.status_code == 400
    batch = {"providers": [{"uuid": HOST, "attributes": most | {"more": 1}}]}
    assert client.post("/treeclaim/providers", json=batch).status_code == 400


def test_an_unknown_provider_has_none(client):
    gone = uuid_of("nobody")
    assert client.get(path(gone)).status_code == 404
    for attributes in (GOOD, {"or": 1}):
        assert put(client, attributes, 0, gone).status_code == 404


def test_they_go_with_their_provider(client):
    put(client, GOOD, uuid=CARD)
    assert client.delete(f"/resource_providers/{CARD}").status_code == 204
    body = {"name": "card", "uuid": CARD, "parent_provider_uuid": HOST}
    assert client.post("/resource_providers", json=body).status_code == 200
    assert read(client, CARD)["attributes"] == {}
    audit = client.get("/treeclaim/audit?kind=without_provider").json()
    assert audit["findings"]["without_provider"]["count"] == 0


def test_other_writes_leave_them_alone(client, clients):
    put(client, GOOD)
    assert client.put(f"/resource_providers/{HOST}", json={"name": "other"}).status_code == 200
    traits = {"resource_provider_generation": 1, "traits": ["HW_NUMA_ROOT"]}
    assert client.put(f"/resource_providers/{HOST}/traits", json=traits).status_code == 200
    batch = {"providers": [{"uuid": HOST, "inventories": {"VCPU": {"total": 4}}}]}
    assert client.post("/treeclaim/providers", json=batch).status_code == 200
    for one in clients:
        assert read(one)["attributes"] == GOOD


def listed(client, query="?include=attributes"):
    answer = client.get(f"/treeclaim/providers{query}")
    assert answer.status_code == 200, answer.text
    return {row["uuid"]: row for row in answer.json()["providers"]}


def test_bulk_reads_include_them(client, clients):
    put(client, HOSTILE, uuid=CARD)
    for one in clients:
        found = listed(one)
        assert found[HOST]["attributes"] == {}
        assert typed(found[CARD]["attributes"]) == typed(HOSTILE)
        assert "attributes" not in listed(one, "?include=traits")[CARD]
    put(client, {"value": 1}, uuid=CARD)
    put(client, {"value": True}, uuid=CARD)
    for one in clients:
        assert typed(listed(one)[CARD]["attributes"]) == typed({"value": True})


def test_a_batch_takes_them(client, clients):
    card = uuid_of("other card")
    entries = [
        {"uuid": HOST, "attributes": GOOD},
        {"uuid": CARD, "attributes": {"value": 1}},
        {"uuid": card, "name": "other", "parent_provider_uuid": HOST, "attributes": HOSTILE},
    ]
    answer = client.post("/treeclaim/providers", json={"providers": entries})
    assert answer.status_code == 200, answer.text
    told = answer.json()["providers"]
    assert [one["result"] for one in told] == ["changed", "changed", "created"]
    assert all("attributes" in one["changed"] for one in told)
    for one in clients:
        found = listed(one)
        for entry in entries:
            assert typed(found[entry["uuid"]]["attributes"]) == typed(entry["attributes"])
    again = client.post("/treeclaim/providers", json={"providers": entries[:2]}).json()
    assert [one["result"] for one in again["providers"]] == ["unchanged"] * 2
    entries[1]["attributes"] = {"value": True}
    again = client.post("/treeclaim/providers", json={"providers": entries[:2]}).json()
    assert [one["result"] for one in again["providers"]] == ["unchanged", "changed"]
    assert again["providers"][1]["generation"] == told[1]["generation"] + 1
    for one in clients:
        assert typed(listed(one)[CARD]["attributes"]) == typed({"value": True})
    assert client.delete(f"/resource_providers/{card}").status_code == 204


def test_what_is_given_takes_them_and_nothing_is_written(client):
    def totals(attributes, **headers):
        new = {"uuid": uuid_of("new"), "name": "new", "attributes": attributes}
        given = {"providers": [{"uuid": HOST, "attributes": attributes}, new]}
        return client.post("/treeclaim/totals", json={"given": given}, headers=headers)

    assert totals(HOSTILE).status_code == 200
    assert totals({"in": 1}).status_code == 400
    assert read(client) == {"resource_provider_generation": 0, "attributes": {}}


def test_watchers_are_told(client):
    since = client.get("/treeclaim/changes").json()["cursor"]
    put(client, GOOD)
    told = client.get(f"/treeclaim/changes?since={since}").json()["changes"]
    assert told == [{"uuid": HOST, "generation": 1, "what": ["attributes"]}]


def test_clients_without_the_opt_in_know_nothing_of_them(client):
    put(client, GOOD)
    assert client.get(path(), headers=BEFORE).status_code == 404
    body = {"resource_provider_generation": 1, "attributes": {}}
    assert client.put(path(), json=body, headers=BEFORE).status_code == 404
    assert read(client)["attributes"] == GOOD


@pytest.mark.parametrize(
    ("rule", "reads", "writes"),
    [("treeclaim:attributes:update", 200, 403), ("placement:resource_providers:show", 403, 200)],
)
def test_they_are_read_as_the_provider_is_and_written_by_a_rule_of_their_own(
    tmp_path, rule, reads, writes
):
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps({rule: "role:nobody"}))
    options = {"oslo_policy.policy_file": str(policy)}
    with application_on("sqlite", tmp_path, **options) as application:
        client = client_of(application, **EXTENDED)
        body = {"name": "host", "uuid": HOST}
        assert client.post("/resource_providers", json=body).status_code == 200
        assert put(client, {}, generation=0).status_code == writes
        batch = {"providers": [{"uuid": HOST, "attributes": GOOD}]}
        assert client.post("/treeclaim/providers", json=batch).status_code == writes
        assert client.get(path()).status_code == reads
        bulk = client.get("/treeclaim/providers?include=attributes")
        assert bulk.status_code == reads
        assert client.get("/treeclaim/providers?include=traits").status_code == 200
