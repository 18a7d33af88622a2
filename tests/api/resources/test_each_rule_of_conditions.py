# SPDX-License-Identifier: Apache-2.0
"""The sentences of contract page 102, section 3, one by one, over HTTP."""

import uuid
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep

import pytest

from tests.databases import EACH_DATABASE
from tests.service import application_on, client_of, make_application

KNOWS = {"openstack-api-version": "placement 1.39, treeclaim 1.0", "x-roles": "admin,service"}
FORMER = {"openstack-api-version": "placement 1.39"}
OLD = {"openstack-api-version": "placement 1.39"}
OLDEST = {"openstack-api-version": "placement 1.0"}
HOST, CARD, OTHER, NOBODY = (str(uuid.UUID(int=number)) for number in range(1, 5))
TAKER, SECOND, HOLD = (str(uuid.UUID(int=number)) for number in range(11, 14))
QUERY = "resources=VCPU:4"


@pytest.fixture(params=EACH_DATABASE)
def client(request, tmp_path):
    with application_on(request.param, tmp_path) as application:
        yield prepared(client_of(application, **KNOWS))


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """A client who is told that a request is wrong before any database is asked."""
    with application_on("sqlite", tmp_path_factory.mktemp("refusing")) as application:
        yield prepared(client_of(application, **KNOWS))


def prepared(client):
    """Two hosts of 10 VCPU, of which the first has a card with two VGPU."""
    entries = [
        {"uuid": HOST, "name": "host", "inventories": {"VCPU": {"total": 10}}},
        {
            "uuid": CARD,
            "name": "card",
            "parent_provider_uuid": HOST,
            "inventories": {"VGPU": {"total": 2}, "VCPU": {"total": 2}},
        },
        {"uuid": OTHER, "name": "other", "inventories": {"VCPU": {"total": 10}}},
    ]
    answer = client.post("/treeclaim/providers", json={"providers": entries})
    assert answer.status_code == 200, answer.text
    return client


def path_of(provider, key=None):
    path = f"/treeclaim/providers/{provider}/conditions"
    return path if key is None else f"{path}/{key}"


def put(client, provider, key, status=204, *, query="", **members):
    body = {"effect": "no_new"} | members
    answer = client.put(path_of(provider, key) + query, json=body)
    assert answer.status_code == status, answer.text
    return answer


def shown(client, provider):
    answer = client.get(path_of(provider))
    assert answer.status_code == 200, answer.text
    return answer.json()["conditions"]


def claim(amounts, generation=None, **members):
    allocations = {host: {"resources": some} for host, some in amounts.items()}
    body = {
        "allocations": allocations,
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }
    return body | members


def allocate(client, consumer, amounts, generation=None, status=204, headers=None, **members):
    body = claim(amounts, generation, **members)
    answer = client.put(f"/allocations/{consumer}", json=body, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def post(client, path, body, status=200):
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer


def roots(client, query=QUERY, headers=None):
    answer = client.get(f"/allocation_candidates?{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    requests = answer.json()["allocation_requests"]
    return {next(iter(request["allocations"])) for request in requests}


def later(seconds):
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- what a condition is ---------------------------------------------------------------------------


def test_a_condition_is_shown_as_it_was_put(client):
    assert shown(client, HOST) == {}
    put(client, HOST, "CLEANING")
    until = later(3600)
    put(client, HOST, "SLOW", effect="leave", until=until, reason="by night ☾")
    put(client, HOST, "ONCE", on_use=True)
    expected = {
        "CLEANING": {
            "effect": "no_new",
            "until": None,
            "reason": "",
            "on_use": False,
            "began": True,
        },
        "SLOW": {
            "effect": "leave",
            "until": until,
            "reason": "by night ☾",
            "on_use": False,
            "began": True,
        },
        "ONCE": {"effect": "no_new", "until": None, "reason": "", "on_use": True, "began": False},
    }
    assert shown(client, HOST) == expected
    listed = client.get(f"/treeclaim/providers?include=conditions&uuid=in:{HOST},{OTHER}").json()
    by_uuid = {one["uuid"]: one["conditions"] for one in listed["providers"]}
    assert by_uuid == {HOST: expected, OTHER: {}}
    for key, members in expected.items():
        put(client, HOST, key, **members)
    assert shown(client, HOST) == expected


def test_it_is_taken_away_or_goes_with_its_provider(client):
    put(client, OTHER, "CLEANING")
    assert client.delete(path_of(OTHER, "CLEANING")).status_code == 204
    assert client.delete(path_of(OTHER, "CLEANING")).status_code == 404
    assert client.delete(path_of(OTHER, "no key")).status_code == 404
    assert client.delete(path_of(NOBODY, "CLEANING")).status_code == 404
    put(client, NOBODY, "CLEANING", 404)
    assert client.get(path_of(NOBODY)).status_code == 404
    put(client, OTHER, "CLEANING")
    assert client.delete(f"/resource_providers/{OTHER}").status_code == 204
    entry = {"uuid": OTHER, "name": "other", "inventories": {"VCPU": {"total": 10}}}
    post(client, "/treeclaim/providers", {"providers": [entry]})
    assert shown(client, OTHER) == {}


@pytest.mark.parametrize("key", ["", "cleaning", "1A", "_A", "A-B", "A" * 64, "Ä"])
def test_a_key_is_of_its_form(refusing, key):
    status = refusing.put(path_of(HOST, key or "%20"), json={"effect": "no_new"}).status_code
    assert status == 400


def test_keys_may_have_63_characters(client):
    put(client, HOST, "A" * 63)
    assert list(shown(client, HOST)) == ["A" * 63]


def test_a_provider_has_at_most_16(client):
    for number in range(16):
        put(client, HOST, f"K{number}")
    put(client, HOST, "K16", 409)
    put(client, HOST, "K0", reason="again")
    put(client, OTHER, "K16")
    assert len(shown(client, HOST)) == 16


@pytest.mark.parametrize(
    "members",
    [
        {"effect": None},
        {"effect": "stay"},
        {"reason": None},
        {"reason": "r" * 256},
        {"on_use": None},
        {"began": "true"},
        {"until": "tomorrow"},
        {"until": "2020-01-01T00:00:00Z"},
        {"until": "2099-01-01T00:00:00Z", "on_use": True},
        {"keys": []},
    ],
)
def test_what_is_none_is_refused(refusing, members):
    put(refusing, HOST, "CLEANING", 400, **members)
    assert shown(refusing, HOST) == {}


def test_the_effect_is_always_needed(client):
    assert client.put(path_of(HOST, "CLEANING"), json={"reason": "r"}).status_code == 400


def test_no_generation_moves(client):
    before = client.get(f"/resource_providers/{HOST}").json()["generation"]
    put(client, HOST, "CLEANING")
    client.delete(path_of(HOST, "CLEANING"))
    assert client.get(f"/resource_providers/{HOST}").json()["generation"] == before


def test_changes_tell_conditions(client):
    cursor = client.get("/treeclaim/providers?limit=1").json()["cursor"]
    put(client, CARD, "CLEANING")
    found = client.get(f"/treeclaim/changes?since={cursor}").json()
    assert [(one["uuid"], one["what"]) for one in found["changes"]] == [(CARD, ["conditions"])]
    # What is put as it is changes nothing.
    put(client, CARD, "CLEANING")
    assert not client.get(f"/treeclaim/changes?since={found['cursor']}").json()["changes"]


def test_conditions_are_unknown_without_the_opt_in(client):
    for headers in (FORMER, OLD):
        assert client.get(path_of(HOST), headers=headers).status_code == 404
        body = {"effect": "no_new"}
        assert client.put(path_of(HOST, "A"), json=body, headers=headers).status_code == 404
    listed = "/treeclaim/providers?include=conditions"
    assert client.get(listed, headers=FORMER).status_code == 404
    query = f"/allocation_candidates?{QUERY}&tolerates=A"
    assert client.get(query, headers=FORMER).status_code == 400
    allocate(client, TAKER, {HOST: {"VCPU": 1}}, status=400, headers=FORMER, tolerates=["A"])


def test_bulk_writes_take_none(client):
    entry = {"uuid": HOST, "conditions": {"A": {"effect": "no_new"}}}
    post(client, "/treeclaim/providers", {"providers": [entry]}, 400)


def test_who_writes_them_needs_the_rule_of_that(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "'treeclaim:conditions:update': 'role:nobody'\n"
        "'placement:resource_providers:show': 'role:somebody'"
    )
    overrides = {"oslo_policy.policy_file": str(policy)}
    client = prepared(client_of(make_application(tmp_path, **overrides), **KNOWS))
    put(client, HOST, "A", 403)
    put(client, HOST, "A", 403, query="?dry_run=true")
    assert client.delete(path_of(HOST, "A")).status_code == 403
    assert client.get(path_of(HOST)).status_code == 403
    assert client.get("/treeclaim/providers?include=conditions").status_code == 403


def test_a_dry_run_tells_what_it_would_touch(client):
    allocate(client, TAKER, {HOST: {"VCPU": 1}, CARD: {"VGPU": 1}})
    allocate(client, SECOND, {CARD: {"VGPU": 1}})
    answer = put(client, HOST, "A", 200, query="?dry_run=true")
    assert answer.json() == {"consumers": 2, "providers": 2}
    answer = put(client, OTHER, "A", 200, query="?dry_run=true", effect="leave")
    assert answer.json() == {"consumers": 0, "providers": 1}
    assert shown(client, HOST) == shown(client, OTHER) == {}
    put(client, HOST, "A", 400, query="?dry_run=perhaps")
    put(client, NOBODY, "A", 404, query="?dry_run=true")
    put(client, HOST, "a", 400, query="?dry_run=true")
    put(client, HOST, "A", query="?dry_run=false")
    assert "A" in shown(client, HOST)


# -- what claims it refuses ------------------------------------------------------------------------


@pytest.mark.parametrize("effect", ["no_new", "leave"])
def test_a_provider_and_all_below_it_give_nothing_new(client, effect):
    put(client, HOST, "CLEANING", effect=effect, reason="by night")
    for host in (HOST, CARD):
        answer = allocate(client, TAKER, {host: {"VCPU": 1}}, status=409)
        (error,) = answer.json()["errors"]
        assert error["code"] == "treeclaim.condition"
        assert "\n\n Unable to allocate inventory: " in error["detail"]
        assert error["conflict"] == {
            "kind": "condition",
            "provider": HOST,
            "key": "CLEANING",
            "reason": "by night",
        }
    allocate(client, TAKER, {OTHER: {"VCPU": 1}})


def test_what_is_above_gives_as_before(client):
    put(client, CARD, "CLEANING")
    allocate(client, TAKER, {CARD: {"VGPU": 1}}, status=409)
    allocate(client, TAKER, {HOST: {"VCPU": 1}})


@pytest.mark.parametrize("headers", [FORMER, OLD])
def test_old_clients_are_refused_in_their_words(client, headers):
    put(client, HOST, "CLEANING")
    answer = allocate(client, TAKER, {HOST: {"VCPU": 1}}, status=409, headers=headers)
    (error,) = answer.json()["errors"]
    assert error["code"] == "placement.undefined_code"
    assert "\n\n Unable to allocate inventory: " in error["detail"]
    assert "conflict" not in error


def test_the_oldest_clients_are_refused_too(client):
    put(client, HOST, "CLEANING")
    share = [{"resource_provider": {"uuid": HOST}, "resources": {"VCPU": 1}}]
    body = {"allocations": share}
    answer = client.put(f"/allocations/{TAKER}", json=body, headers=OLDEST)
    assert answer.status_code == 409
    assert "Unable to allocate inventory" in answer.text


def test_who_holds_keeps_gives_back_and_hands_over(client):
    allocate(client, TAKER, {HOST: {"VCPU": 4}})
    put(client, HOST, "CLEANING")
    allocate(client, TAKER, {HOST: {"VCPU": 5}}, 1, 409)
    allocate(client, TAKER, {HOST: {"VCPU": 4}}, 1)
    allocate(client, TAKER, {HOST: {"VCPU": 3}}, 2)
    # At and below as one.
    allocate(client, TAKER, {HOST: {"VCPU": 1}, CARD: {"VCPU": 2}}, 3)
    allocate(client, TAKER, {HOST: {"VCPU": 1}, CARD: {"VGPU": 2}}, 4, 409)
    handed = {TAKER: claim({}, 4), SECOND: claim({HOST: {"VCPU": 3}})}
    post(client, "/allocations", handed, 204)
    more = {SECOND: claim({}, 1), TAKER: claim({HOST: {"VCPU": 4}})}
    post(client, "/allocations", more, 409)
    assert client.delete(f"/allocations/{SECOND}").status_code == 204


def test_a_live_migration_off_a_host_works(client):
    allocate(client, TAKER, {HOST: {"VCPU": 4}}, headers=OLD)
    put(client, HOST, "MAINTENANCE", effect="leave")
    # As the compute service does it: the migration takes the source over, the server the target.
    moved = {
        SECOND: claim({HOST: {"VCPU": 4}}, consumer_type="MIGRATION"),
        TAKER: claim({OTHER: {"VCPU": 4}}, 1),
    }
    answer = client.post("/allocations", json=moved, headers=OLD)
    assert answer.status_code == 204, answer.text
    assert client.delete(f"/allocations/{SECOND}", headers=OLD).status_code == 204
    back = {TAKER: claim({HOST: {"VCPU": 4}}, 2)}
    assert client.post("/allocations", json=back, headers=OLD).status_code == 409


def test_a_reshape_moves_what_is_there(client):
    allocate(client, TAKER, {HOST: {"VCPU": 2}})
    put(client, HOST, "CLEANING")

    def body(amount):
        generations = {
            uuid: client.get(f"/resource_providers/{uuid}").json()["generation"]
            for uuid in (HOST, CARD)
        }
        stocks = {HOST: {"DISK_GB": {"total": 10}}, CARD: {"VCPU": {"total": 10}}}
        return {
            "inventories": {
                uuid: {
                    "inventories": stock,
                    "resource_provider_generation": generations[uuid],
                }
                for uuid, stock in stocks.items()
            },
            "allocations": {TAKER: claim({CARD: {"VCPU": amount}}, 1)},
        }

    answer = post(client, "/reshaper", body(3), 409)
    assert answer.json()["errors"][0]["code"] == "treeclaim.condition"
    post(client, "/reshaper", body(2), 204)


def test_what_holds_give_is_more(client):
    allocate(
        client, HOLD, {HOST: {"VCPU": 4}}, hold={"returns": True}, consumer_type="TREECLAIM_HOLD"
    )
    put(client, HOST, "CLEANING")
    drawing = {HOST: {"VCPU": 2}}
    allocate(client, TAKER, drawing, status=409, from_holds=[HOLD])
    allocate(client, TAKER, drawing, from_holds=[HOLD], tolerates=["CLEANING"])
    # A return is none.
    assert client.delete(f"/allocations/{TAKER}").status_code == 204
    assert client.get(f"/allocations/{HOLD}").json()["allocations"][HOST]["resources"] == {
        "VCPU": 4
    }


def test_the_rest_of_a_refused_write_is_not_written(client):
    put(client, HOST, "CLEANING")
    both = {TAKER: claim({OTHER: {"VCPU": 1}}), SECOND: claim({HOST: {"VCPU": 1}})}
    post(client, "/allocations", both, 409)
    assert client.get(f"/allocations/{TAKER}").json()["allocations"] == {}


def test_who_tolerates_a_condition_is_left_out_of_the_sum(client):
    put(client, HOST, "A")
    put(client, CARD, "B")
    amounts = {CARD: {"VGPU": 1}}
    allocate(client, TAKER, amounts, status=409, tolerates=["A"])
    allocate(client, TAKER, amounts, status=409, tolerates=["B", "C"])
    allocate(client, TAKER, amounts, tolerates=["A", "B"])
    # Somebody who does not is not given what another one gives up who does.
    handed = {TAKER: claim({}, 1, tolerates=["A", "B"]), SECOND: claim(amounts)}
    post(client, "/allocations", handed, 409)
    handed = {TAKER: claim({}, 1), SECOND: claim(amounts)}
    post(client, "/allocations", handed, 204)


@pytest.mark.parametrize("given", ["A", ["a"], [1], ["A"] * 65, None])
def test_what_cannot_be_tolerated_is_refused(refusing, given):
    allocate(refusing, TAKER, {HOST: {"VCPU": 1}}, status=400, tolerates=given)


def test_sixty_four_keys_may_be_tolerated(client):
    allocate(client, TAKER, {HOST: {"VCPU": 1}}, tolerates=[f"K{number}" for number in range(64)])


def test_a_reshape_tolerates_nothing(client):
    body = {
        "inventories": {
            OTHER: {"inventories": {"VCPU": {"total": 10}}, "resource_provider_generation": 1}
        },
        "allocations": {TAKER: claim({HOST: {"VCPU": 1}}, tolerates=["A"])},
    }
    post(client, "/reshaper", body, 400)


# -- time and use ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_is_gone_when_its_time_is_over(client):
    put(client, HOST, "CLEANING", until=later(2))
    allocate(client, TAKER, {HOST: {"VCPU": 1}}, status=409)
    assert roots(client) == {OTHER}
    end = monotonic() + 30
    while roots(client) != {HOST, OTHER}:
        assert monotonic() < end
        sleep(0.05)
    assert shown(client, HOST) == {}
    assert client.delete(path_of(HOST, "CLEANING")).status_code == 404
    allocate(client, TAKER, {HOST: {"VCPU": 1}})


def test_on_use_it_begins_with_the_first_write_that_uses_more(client):
    put(client, HOST, "ONCE", on_use=True)
    assert roots(client) == {HOST, OTHER}
    allocate(client, SECOND, {OTHER: {"VCPU": 1}})
    assert not shown(client, HOST)["ONCE"]["began"]
    allocate(client, TAKER, {CARD: {"VGPU": 1}})
    assert shown(client, HOST)["ONCE"]["began"]
    assert roots(client) == {OTHER}
    allocate(client, SECOND, {HOST: {"VCPU": 1}}, 1, 409)
    # Who holds stays, and has no more.
    allocate(client, TAKER, {CARD: {"VGPU": 2}}, 1, 409)
    allocate(client, TAKER, {CARD: {"VGPU": 1}}, 1)
    assert client.delete(f"/allocations/{TAKER}").status_code == 204
    allocate(client, TAKER, {CARD: {"VGPU": 1}}, status=409)
    # It is armed again.
    put(client, HOST, "ONCE", on_use=True)
    assert not shown(client, HOST)["ONCE"]["began"]
    allocate(client, SECOND, {HOST: {"VCPU": 1}}, 1)
    assert shown(client, HOST)["ONCE"]["began"]


def test_a_use_by_who_tolerates_it_lets_it_begin_too(client):
    put(client, HOST, "ONCE", on_use=True)
    allocate(client, TAKER, {HOST: {"VCPU": 1}}, tolerates=["ONCE"])
    assert shown(client, HOST)["ONCE"]["began"]


def test_what_is_given_as_begun_begins_at_once(client):
    put(client, HOST, "ONCE", on_use=True, began=True)
    assert shown(client, HOST)["ONCE"]["began"]
    allocate(client, TAKER, {HOST: {"VCPU": 1}}, status=409)
    # Without on_use it is ignored.
    put(client, OTHER, "NOW", began=False)
    assert shown(client, OTHER)["NOW"]["began"]


def test_placements_let_one_consumer_into_a_condition_on_use(client):
    put(client, HOST, "ONCE", on_use=True)
    put(client, OTHER, "CLEANING")
    request = {
        "alternatives": ["resources=VCPU:1"],
        "consumers": [TAKER, SECOND],
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
    }
    counted = post(
        client, "/treeclaim/capacity", {"requests": {"q": "resources_G=VCPU:1"}}, 200
    ).json()["capacity"]["q"]
    assert (counted["fits"], counted["at_most"]) == (1, 1)
    post(client, "/treeclaim/placements", {"requests": [request]}, 409)
    assert not shown(client, HOST)["ONCE"]["began"]
    body = {"requests": [request], "partial": True}
    answer = post(client, "/treeclaim/placements", body, 201).json()
    assert [list(one["allocations"]) for one in answer["placements"]] == [[HOST]]
    assert answer["unplaced"] == [SECOND]
    assert shown(client, HOST)["ONCE"]["began"]


def test_assumed_consumers_begin_a_condition_on_use(client):
    put(client, HOST, "ONCE", on_use=True)
    put(client, OTHER, "CLEANING")
    place = {"requests": [{"query": "resources=VCPU:1", "amount": 2}]}
    body = {"requests": {"q": "resources_G=VCPU:1"}, "given": {"place": place}}
    answer = post(client, "/treeclaim/capacity", body, 200).json()
    assert answer["given"] == {"placed": [1]}
    assert answer["capacity"]["q"]["fits"] == 0
    assert not shown(client, HOST)["ONCE"]["began"]


def test_a_refused_write_lets_nothing_begin(client):
    put(client, HOST, "ONCE", on_use=True)
    allocate(client, TAKER, {HOST: {"VCPU": 11}}, status=409)
    assert not shown(client, HOST)["ONCE"]["began"]


# -- what a search finds ---------------------------------------------------------------------------


def test_no_candidate_uses_them(client):
    assert roots(client, "resources=VCPU:2") == {HOST, CARD, OTHER}
    put(client, HOST, "CLEANING")
    for headers in (None, FORMER, OLD, {"openstack-api-version": "placement 1.10"}):
        requests = client.get(f"/allocation_candidates?{QUERY}", headers=headers).json()
        assert len(requests["allocation_requests"]) == 1
    assert roots(client, "resources=VCPU:2") == {OTHER}
    assert roots(client, "resources=VCPU:2&tolerates=CLEANING") == {HOST, CARD, OTHER}
    client.delete(path_of(HOST, "CLEANING"))
    assert roots(client, "resources=VCPU:2") == {HOST, CARD, OTHER}


def test_a_question_tolerates_by_group(client):
    put(client, CARD, "A")
    put(client, HOST, "B")
    both = "resources_A=VGPU:1&resources_B=VCPU:1&group_policy=none&in_tree_B=" + HOST
    assert not roots(client, both)
    assert not roots(client, f"{both}&tolerates_A=A,B")
    assert not roots(client, f"{both}&tolerates_B=B")
    assert roots(client, f"{both}&tolerates_A=A&tolerates_A=B&tolerates_B=B")


def test_the_group_without_a_suffix_tolerates_for_each_of_its_providers(client):
    put(client, CARD, "A")
    query = "resources=VCPU:1,VGPU:1"
    assert not roots(client, query)
    assert roots(client, f"{query}&tolerates=A")


def test_a_group_without_resources_takes_nothing(client):
    put(client, CARD, "A")
    traits = {"traits": ["CUSTOM_CARD"]}
    assert client.put("/traits/CUSTOM_CARD").is_success
    generation = client.get(f"/resource_providers/{CARD}").json()["generation"]
    traits["resource_provider_generation"] = generation
    assert client.put(f"/resource_providers/{CARD}/traits", json=traits).is_success
    assert roots(client, "resources_A=VCPU:4&required_B=CUSTOM_CARD&same_subtree=_A,_B") == {HOST}


@pytest.mark.parametrize("given", ["", "a", "A,", "A,b", "A" * 64])
def test_what_is_no_key_is_refused_and_one_that_nobody_has_is_not(refusing, given):
    path = f"/allocation_candidates?{QUERY}&tolerates={given}"
    assert refusing.get(path).status_code == 400
    assert roots(refusing, f"{QUERY}&tolerates=NOBODY_HAS_IT") == {HOST, OTHER}


def test_placements_claim_with_what_their_queries_tolerate(client):
    put(client, HOST, "A")
    put(client, OTHER, "B")
    request = {
        "alternatives": [QUERY],
        "consumers": [TAKER],
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
    }
    body = {"requests": [request]}
    post(client, "/treeclaim/placements", body, 409)
    request["alternatives"] = [f"{QUERY}&tolerates=B"]
    answer = post(client, "/treeclaim/placements", body, 201).json()
    assert list(answer["placements"][0]["allocations"]) == [OTHER]


def test_capacity_leaves_them_out_of_what_fits_alone(client):
    def capacity(query=QUERY):
        answer = post(client, "/treeclaim/capacity", {"requests": {"small": query}})
        found = answer.json()["capacity"]["small"]
        return found["fits"], found["when_empty"]

    assert capacity() == (4, 4)
    put(client, HOST, "CLEANING")
    assert capacity() == (2, 4)
    assert capacity(f"{QUERY}&tolerates=CLEANING") == (4, 4)
    client.delete(path_of(HOST, "CLEANING"))
    assert capacity() == (4, 4)


def test_an_explanation_names_key_and_reason(client):
    put(client, HOST, "CLEANING", reason="by night")
    put(client, OTHER, "CLEANING", reason="by day")
    path = f"/allocation_candidates/explain?{QUERY}"
    found = client.get(path).json()
    assert not found["feasible"]
    assert found["fits_when_empty"]
    assert [step["reason"] for step in found["funnel"]] == ["condition"]
    assert found["funnel"][0]["detail"] == {"key": "CLEANING", "reason": "by night"}
    details = {
        tree["root_provider"]["uuid"]: [
            (one["reason"], one["detail"]) for one in tree["blocked_by"]
        ]
        for tree in found["nearest"]
    }
    assert details == {
        HOST: [("condition", {"key": "CLEANING", "reason": "by night"})],
        OTHER: [("condition", {"key": "CLEANING", "reason": "by day"})],
    }
    assert "Without the conditions of providers 2 trees would match." in found["advice"]


# -- plans and audit -------------------------------------------------------------------------------


def test_an_audit_names_who_must_leave(client):
    allocate(client, TAKER, {HOST: {"VCPU": 1}, CARD: {"VGPU": 1}})
    allocate(client, SECOND, {OTHER: {"VCPU": 1}})
    put(client, HOST, "A", effect="leave")
    put(client, CARD, "B", effect="leave")
    put(client, CARD, "LATER", effect="leave", on_use=True)
    put(client, OTHER, "C", effect="no_new")
    found = client.get("/treeclaim/audit?kind=must_leave").json()["findings"]["must_leave"]
    assert found == {
        "count": 2,
        "items": [
            {"consumer": TAKER, "provider": HOST, "key": "A"},
            {"consumer": TAKER, "provider": CARD, "key": "B"},
        ],
    }
    assert "must_leave" in client.get("/treeclaim/audit").json()["findings"]


@pytest.mark.parametrize(
    ("request_of_taker", "must_leave"),
    [
        (["resources=VCPU:1&resources_X=VGPU:1"], True),
        (["resources=VCPU:1&resources_X=VGPU:1&tolerates_X=A"], False),
        (["resources=VCPU:1&resources_X=VGPU:1&tolerates_X=B"], True),
        # Only the first alternative that the allocations add up to counts.
        (["resources=VCPU:9&tolerates=A", "resources=VCPU:1&resources_X=VGPU:1"], True),
        (["resources=VCPU:9", "resources=VCPU:1&resources_X=VGPU:1&tolerates=A"], False),
        # A request that the allocations do not add up to is not valid.
        (["resources=VCPU:2&tolerates=A"], True),
    ],
)
def test_audit_and_plan_agree_on_consumers_that_must_leave(client, request_of_taker, must_leave):
    allocate(client, TAKER, {HOST: {"VCPU": 1}, CARD: {"VGPU": 1}})
    body = {"requests": {TAKER: request_of_taker}}
    assert client.post("/treeclaim/requests", json=body).status_code == 200
    put(client, HOST, "A", effect="leave")
    audited = client.get("/treeclaim/audit?kind=must_leave").json()["findings"]["must_leave"]
    assert (audited["count"] == 1) == must_leave, audited
    assert moves(client)["before"]["left"] == audited["count"]


def test_plan_moves_nobody_where_a_condition_would_make_it_leave(client):
    allocate(client, TAKER, {HOST: {"VCPU": 1}}, request=["resources=VCPU:1"])
    put(client, HOST, "A", effect="leave")
    put(client, OTHER, "B", effect="leave", on_use=True)
    put(client, CARD, "C")
    found = moves(client)
    assert (found["moves"], found["reached"], found["proven"]) == ([], False, True)
    assert found["after"]["left"] == 1


def moves(client, status=200, headers=None, **more):
    body = {"goal": {"leave": True}} | more
    answer = client.post("/treeclaim/moves", json=body, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.slow
def test_a_plan_brings_away_who_must_leave(client):
    allocate(client, TAKER, {CARD: {"VCPU": 1}}, request=["resources=VCPU:1"])
    allocate(client, SECOND, {CARD: {"VCPU": 1}}, request=["resources=VCPU:1"])
    assert moves(client)["reached"]
    put(client, CARD, "A", effect="leave")
    body = {TAKER: ["resources=VCPU:1&tolerates=A"]}
    found = moves(client, requests=body)
    # A consumer whose request tolerates the condition need not leave.
    assert found["reached"] and found["before"]["left"] == 1 and found["after"]["left"] == 0
    goes = {move["consumer"]: list(move["to"]) for move in found["moves"]}
    assert set(goes) == {SECOND}
    assert CARD not in {provider for some in goes.values() for provider in some}
    moves(client, 404, headers=FORMER)
    assert client.post("/treeclaim/moves", json={"goal": {"leave": False}}).status_code == 400


def test_a_plan_says_who_is_stuck_where_he_must_leave(client):
    allocate(client, TAKER, {HOST: {"VCPU": 1}})
    put(client, HOST, "A", effect="leave")
    found = moves(client)
    assert not found["reached"]
    assert found["stuck"] == [{"consumer": TAKER, "reason": "no_request"}]


@pytest.mark.slow
def test_survival_judges_by_conditions(client):
    allocate(client, TAKER, {HOST: {"VCPU": 1}}, request=["resources=VCPU:1"])
    answer = post(client, "/treeclaim/survival", {"domains": "tree"}).json()
    assert (answer["survive"], answer["of"]) == (2, 2)
    put(client, OTHER, "A")
    answer = post(client, "/treeclaim/survival", {"domains": "tree"}).json()
    assert (answer["survive"], answer["of"]) == (1, 2)


@pytest.mark.slow
def test_what_is_given_may_have_conditions(client):
    def matching(*entries, **headers):
        body = {"alternatives": [QUERY], "given": {"providers": list(entries)}}
        answer = client.post("/treeclaim/candidates", json=body, **headers)
        assert answer.status_code == 200, answer.text
        return {next(iter(one["allocations"])) for one in answer.json()["allocation_requests"]}

    given = {"uuid": HOST, "conditions": {"A": {"effect": "no_new"}}}
    assert matching(given) == {OTHER}
    assert matching({"uuid": HOST, "name": "host"}) == {HOST, OTHER}
    put(client, HOST, "A")
    assert matching({"uuid": HOST, "conditions": {}}) == {HOST, OTHER}
    assert matching({"uuid": HOST, "name": "host"}) == {OTHER}
    armed = {"A": {"effect": "no_new", "on_use": True}}
    assert matching({"uuid": HOST, "conditions": armed}) == {HOST, OTHER}
    for strange in ({"a": {"effect": "no_new"}}, {"A": {}}, {"A": {"effect": "stay"}}):
        body = {
            "alternatives": [QUERY],
            "given": {"providers": [{"uuid": HOST, "conditions": strange}]},
        }
        post(client, "/treeclaim/candidates", body, 400)
    body = {"alternatives": [QUERY], "given": {"providers": [given]}}
    answer = client.post("/treeclaim/candidates", json=body, headers=FORMER)
    assert answer.status_code == 404


# -- clients that know nothing of it ---------------------------------------------------------------


def test_refreshes_of_old_clients_keep_conditions(client):
    put(client, HOST, "CLEANING", reason="by night")
    before = shown(client, HOST)
    path = f"/resource_providers/{HOST}"

    def generation():
        return client.get(path, headers=OLD).json()["generation"]

    for part, value in (
        ("inventories", {"VCPU": {"total": 12}}),
        ("traits", ["HW_CPU_X86_AVX2"]),
        ("aggregates", [NOBODY]),
    ):
        body = {part: value, "resource_provider_generation": generation()}
        answer = client.put(f"{path}/{part}", json=body, headers=OLD)
        assert answer.status_code == 200, answer.text
    assert client.put(path, json={"name": "renamed"}, headers=OLD).status_code == 200
    moved = {"name": "card", "parent_provider_uuid": OTHER}
    assert client.put(f"/resource_providers/{CARD}", json=moved, headers=OLD).status_code == 200
    assert shown(client, HOST) == before
    # What was below is elsewhere by now.
    allocate(client, TAKER, {CARD: {"VGPU": 1}})
    allocate(client, SECOND, {HOST: {"VCPU": 1}}, status=409)
    put(client, OTHER, "SLOW")
    allocate(client, TAKER, {CARD: {"VGPU": 2}}, 1, 409)
