# SPDX-License-Identifier: Apache-2.0
"""Sentences of contract page 100 that no other test over HTTP would miss, one by one."""

import threading
import uuid
from time import monotonic

import pytest

from tests.service import client_of, make_application, services_on
from treeclaim.store.operations.allocations import holds as hold_writes

KNOWS = {"openstack-api-version": "placement 1.39, treeclaim 1.0", "x-roles": "admin,service"}
OLD = {"openstack-api-version": "placement 1.39"}
HOST, REMOTE, HOLD, TAKER, OTHER = (str(uuid.UUID(int=number)) for number in range(1, 6))
MANY = [str(uuid.UUID(int=1000 + number)) for number in range(1001)]
QUERY = "resources=VCPU:4"
PATIENT = 60.0


def prepared(client):
    """Let a client have two hosts of 10 VCPU in steps of two."""
    stock = {"VCPU": {"total": 10, "step_size": 2, "min_unit": 2, "max_unit": 8}}
    entries = [{"uuid": one, "name": one, "inventories": stock} for one in (HOST, REMOTE)]
    answer = client.post("/treeclaim/providers", json={"providers": entries})
    assert answer.status_code == 200, answer.text
    return client


@pytest.fixture
def client(tmp_path):
    return prepared(client_of(make_application(tmp_path), **KNOWS))


def claim(amount, generation=None, *, host=HOST, **members):
    allocations = {host: {"resources": {"VCPU": amount}}} if amount else {}
    body = {
        "allocations": allocations,
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }
    return {**body, **members}


def hold(amount, generation=None, *, host=HOST, **terms):
    body = claim(amount, generation, host=host, hold=terms)
    del body["consumer_type"]
    return body


def put(client, consumer, body, status=204, headers=None):
    answer = client.put(f"/allocations/{consumer}", json=body, headers=headers)
    assert answer.status_code == status, answer.text


def post(client, path, body, status=200):
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer


def get(client, consumer):
    return client.get(f"/allocations/{consumer}").json()


def placing(consumer, alternatives, **more):
    request = {"alternatives": alternatives, "consumers": [consumer]}
    return {"requests": [request | {"project_id": "p", "user_id": "u"} | more]}


def reshape(client, allocations, status=204):
    path = f"/resource_providers/{HOST}"
    generation = client.get(path).json()["generation"]
    stock = client.get(f"{path}/inventories").json()["inventories"]
    inventories = {HOST: {"inventories": stock, "resource_provider_generation": generation}}
    body = {"inventories": inventories, "allocations": allocations}
    return post(client, "/reshaper", body, status)


# -- the table of rules ----------------------------------------------------------------------------


def test_who_makes_changes_or_draws_from_holds_needs_the_rule_of_that(tmp_path):
    policy = tmp_path / "policy.yaml"
    rules = ("holds:manage", "holds:draw", "requests:update")
    policy.write_text("\n".join(f"'treeclaim:{rule}': 'role:nobody'" for rule in rules))
    overrides = {"oslo_policy.policy_file": str(policy)}
    client = prepared(client_of(make_application(tmp_path, **overrides), **KNOWS))
    for made in (hold(2), claim(2, from_holds=[HOLD])):
        put(client, TAKER, made, 403)
        post(client, "/allocations", {TAKER: made}, 403)
    reshape(client, {TAKER: hold(2)}, 403)
    post(client, "/treeclaim/placements", placing(TAKER, [QUERY], hold={}), 403)
    drawing = placing(TAKER, [QUERY], from_holds=[HOLD], consumer_type="INSTANCE")
    post(client, "/treeclaim/placements", drawing, 403)
    post(client, "/treeclaim/holds", {"holds": {HOLD: {"note": "n"}}}, 403)
    post(client, "/treeclaim/requests", {"requests": {TAKER: [QUERY]}}, 403)
    # What belongs to no hold is as it was.
    put(client, TAKER, claim(2, request=[QUERY]))
    reshape(client, {TAKER: claim(2, 1)})
    placed = placing(OTHER, [QUERY], consumer_type="INSTANCE")
    post(client, "/treeclaim/placements", placed, 201)


# -- 1. a hold -------------------------------------------------------------------------------------


def test_a_write_below_its_version_makes_no_hold_by_the_type(client):
    put(client, TAKER, claim(2, consumer_type="TREECLAIM_HOLD"), headers=OLD)
    assert get(client, TAKER)["hold"] is None
    assert client.get("/treeclaim/holds").json()["holds"] == []
    put(client, OTHER, claim(2, from_holds=[TAKER]), 409)


def test_what_is_held_is_used_by_its_project(client):
    put(client, HOLD, hold(6))
    usages = client.get("/usages?project_id=p").json()["usages"]
    assert usages["TREECLAIM_HOLD"]["VCPU"] == 6
    assert client.get(f"/resource_providers/{HOST}/usages").json()["usages"] == {"VCPU": 6}


@pytest.mark.parametrize("amount", [1, 3, 9])
def test_units_concern_no_hold_and_no_search_for_one(client, amount):
    body = placing(HOLD, [f"resources=VCPU:{amount}"], hold={})
    post(client, "/treeclaim/placements", body, 201)
    ((where, part),) = get(client, HOLD)["allocations"].items()
    assert part["resources"] == {"VCPU": amount}
    put(client, HOLD, claim(amount, 1, host=where), headers=OLD)
    put(client, TAKER, claim(amount, host=HOST if where == REMOTE else REMOTE), 409)


def test_a_hold_ends_by_a_write_that_leaves_it_nothing(client):
    put(client, HOLD, hold(4))
    put(client, TAKER, claim(4, from_holds=[HOLD]))
    assert get(client, HOLD)["hold"] is None
    put(client, HOLD, hold(4))
    put(client, HOLD, claim(0, 1, consumer_type="TREECLAIM_HOLD"))
    assert get(client, HOLD)["hold"] is None
    assert get(client, TAKER)["allocations"][HOST]["resources"] == {"VCPU": 4}


def test_what_is_drawn_counts_as_held_by_the_hold_for_its_request(client):
    post(client, "/treeclaim/placements", placing(HOLD, [QUERY], hold={"returns": True}), 201)
    (where,) = get(client, HOLD)["allocations"]
    put(client, TAKER, claim(2, host=where, from_holds=[HOLD]))
    shown = get(client, HOLD)
    assert (shown["request"], shown["request_valid"]) == ([QUERY], True)


@pytest.mark.parametrize("path", ["holds", "requests"])
def test_from_one_to_a_thousand_are_changed_at_once(client, path):
    value = {"note": "n"} if path == "holds" else None
    post(client, f"/treeclaim/{path}", {path: {}}, 400)
    post(client, f"/treeclaim/{path}", {path: dict.fromkeys(MANY, value)}, 400)
    found = post(client, f"/treeclaim/{path}", {path: dict.fromkeys(MANY[:1000], value)}).json()
    assert (found["updated"], len(found["unknown"])) == (0, 1000)


# -- 2. drawing ------------------------------------------------------------------------------------


def test_who_cannot_draw_is_refused_where_it_stands(client):
    put(client, HOLD, hold(4))
    put(client, TAKER, claim(2, from_holds=MANY[:65]), 400)
    put(client, TAKER, claim(2, from_holds=[*MANY[:63], HOLD]), 409)
    reshape(client, {TAKER: claim(2, from_holds=[HOLD])}, 400)
    # A hold is a consumer of the write, and another one would draw from it.
    both = {HOLD: hold(2, 1), TAKER: claim(2, from_holds=[HOLD])}
    post(client, "/allocations", both, 400)
    put(client, HOLD, claim(4, 1, consumer_type="TREECLAIM_HOLD", from_holds=[OTHER]), 400)
    assert get(client, TAKER)["allocations"] == {}


def test_holds_give_in_their_order_and_only_the_rest_is_out_of_what_is_free(client):
    put(client, HOLD, hold(3, returns=True))
    put(client, OTHER, hold(3, returns=True))
    put(client, TAKER, claim(8, from_holds=[OTHER, HOLD]))
    drawn = get(client, TAKER)["drawn_from"]
    assert drawn == {OTHER: {HOST: {"VCPU": 3}}, HOLD: {HOST: {"VCPU": 3}}}
    # The hold with the greatest UUID gets its amount back first.
    least, greatest = sorted([HOLD, OTHER])
    put(client, TAKER, claim(4, 1))
    assert get(client, TAKER)["drawn_from"] == {
        least: {HOST: {"VCPU": 3}},
        greatest: {HOST: {"VCPU": 1}},
    }
    assert get(client, greatest)["allocations"][HOST]["resources"] == {"VCPU": 2}
    assert get(client, greatest)["consumer_generation"] == 3


def test_a_reshape_passes_what_is_drawn_on_to_where_its_consumer_grows(client):
    put(client, HOLD, hold(4, returns=True))
    put(client, TAKER, claim(4, from_holds=[HOLD]))
    reshape(client, {TAKER: claim(4, 1, host=REMOTE)})
    assert get(client, TAKER)["drawn_from"] == {HOLD: {REMOTE: {"VCPU": 4}}}
    client.delete(f"/allocations/{TAKER}")
    assert get(client, HOLD)["allocations"][REMOTE]["resources"] == {"VCPU": 4}


# -- 3. time ---------------------------------------------------------------------------------------


def test_a_hold_whose_time_has_come_goes_though_nobody_writes_and_watchers_see_it(
    tmp_path, monkeypatch
):
    """The thread of the process does it; the clock is that of the database, set ahead here."""
    with services_on(tmp_path) as (services, application):
        client = prepared(client_of(application, **KNOWS))
        put(client, HOLD, hold(4, until="2999-01-01T00:00:00Z", returns=True))
        put(client, TAKER, claim(2, from_holds=[HOLD]))
        cursor = client.get("/treeclaim/providers?limit=1").json()["cursor"]
        ended = services.store.now().replace(year=3000)
        monkeypatch.setattr(hold_writes, "now_of", lambda _connection: ended)
        monkeypatch.setattr(services.store, "now", lambda: ended)
        end = monotonic() + PATIENT
        while get(client, HOLD)["allocations"]:
            assert monotonic() < end
            threading.Event().wait(0.01)
        assert get(client, HOLD)["hold"] is None
        assert get(client, TAKER)["drawn_from"] == {}
        changed = client.get(f"/treeclaim/changes?since={cursor}").json()
        assert HOST in str(changed)


# -- 4. kept requests ------------------------------------------------------------------------------


def test_a_request_that_is_kept_already_is_taken_unchecked_and_is_invalid_without_its_names(
    client,
):
    assert client.put("/traits/CUSTOM_GONE").status_code == 201
    request = [f"{QUERY}&required=!CUSTOM_GONE", "resources=VCPU:6"]
    put(client, TAKER, claim(4, request=request))
    assert get(client, TAKER)["request_valid"] is True
    assert client.delete("/traits/CUSTOM_GONE").status_code == 204
    assert get(client, TAKER)["request_valid"] is False
    put(client, TAKER, claim(4, 1, request=request))
    put(client, OTHER, claim(4, request=request), 400)
    # The other alternative can still be read.
    put(client, TAKER, claim(6, 2))
    assert get(client, TAKER)["request_valid"] is True
    # What was read can be written back, whatever it says of itself.
    put(client, TAKER, get(client, TAKER) | {"request_valid": False})
    assert get(client, TAKER)["request_valid"] is True


def test_placements_keep_queries_as_given_unless_they_are_long(client):
    put(client, HOLD, hold(4))
    short = [f"{QUERY}&limit=7", f"limit=1&{QUERY}"]
    given = placing(TAKER, short, consumer_type="INSTANCE", from_holds=[HOLD])
    post(client, "/treeclaim/placements", given, 201)
    assert get(client, TAKER)["request"] == short
    long = [f"{QUERY}&required=" + ",".join(["!HW_CPU_X86_AVX2"] * 1000)] * 2
    post(client, "/treeclaim/placements", placing(OTHER, long, consumer_type="INSTANCE"), 201)
    assert get(client, OTHER)["request"] is None


def test_a_request_changes_no_generation_and_goes_through_each_write(client):
    put(client, TAKER, claim(4))
    post(client, "/treeclaim/requests", {"requests": {TAKER: [QUERY]}})
    assert (get(client, TAKER)["request"], get(client, TAKER)["consumer_generation"]) == (
        [QUERY],
        1,
    )
    other = ["resources=VCPU:2"]
    post(client, "/allocations", {TAKER: claim(4, 1, request=other)}, 204)
    assert get(client, TAKER)["request"] == other
    reshape(client, {TAKER: claim(4, 2, request=[QUERY])})
    assert get(client, TAKER)["request"] == [QUERY]
    put(client, TAKER, claim(4, 3), headers=OLD)
    assert get(client, TAKER)["request"] == [QUERY]
    for wrong in ([QUERY] * 17, [], [f"{QUERY}&from_holds={HOLD}"], "x"):
        post(client, "/treeclaim/requests", {"requests": {TAKER: wrong}}, 400)
    listed = client.get("/treeclaim/allocations").json()["consumers"]
    assert "request" not in listed[0]


# -- 5. where it shows -----------------------------------------------------------------------------


def test_watchers_are_told_where_a_holds_part_changes_though_usage_does_not(client):
    put(client, HOLD, hold(4, returns=True))
    put(client, TAKER, claim(4, from_holds=[HOLD]))
    cursor = client.get("/treeclaim/providers?limit=1").json()["cursor"]
    assert client.delete(f"/allocations/{TAKER}").status_code == 204
    found = client.get(f"/treeclaim/changes?since={cursor}").json()
    assert [(one["uuid"], one["what"]) for one in found["changes"]] == [(HOST, ["allocations"])]


def test_an_audit_takes_no_hold_for_a_mistake(client):
    body = hold(3, returns=True)
    body["allocations"][REMOTE] = {"resources": {"VCPU": 1}}
    put(client, HOLD, body)
    put(client, OTHER, hold(2, returns=True))
    put(client, TAKER, claim(2, from_holds=[OTHER]))
    findings = client.get("/treeclaim/audit").json()["findings"]
    for kind in (
        "against_units",
        "in_many_trees",
        "empty_consumer",
        "expired_hold",
        "broken_hold",
        "broken_draw",
    ):
        assert findings[kind]["count"] == 0, findings[kind]
