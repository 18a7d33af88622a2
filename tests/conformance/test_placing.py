# SPDX-License-Identifier: Apache-2.0
"""Order, alternatives, placements and capacity over HTTP (contract page 98)."""

import shutil
import uuid
from urllib.parse import quote

import pytest

from tests.service import client_of, services_on, start_on

NEWEST = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
_NAMESPACE = uuid.UUID(int=98)


def uuid_of(name):
    return str(uuid.uuid5(_NAMESPACE, name))


HOSTS = {"a": ("r1", 8), "b": ("r1", 4), "c": ("r2", 6), "d": (None, 2)}
"""Name: rack and VCPU."""

FAST = "CUSTOM_FAST"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A database with four hosts in two racks; host b is fast. Each test has a copy."""
    folder = tmp_path_factory.mktemp("hosts")
    with services_on(folder) as (_, application), client_of(application, **NEWEST) as client:
        assert client.put(f"/traits/{FAST}").is_success
        for name, (rack, amount) in HOSTS.items():
            path = f"/resource_providers/{uuid_of(name)}"
            body = {"name": name, "uuid": uuid_of(name)}
            assert client.post("/resource_providers", json=body).is_success
            for part, value in (
                ("inventories", {"VCPU": {"total": amount}}),
                ("aggregates", [uuid_of(rack)] if rack else []),
                ("traits", [FAST] if name == "b" else []),
            ):
                generation = client.get(path).json()["generation"]
                body = {part: value, "resource_provider_generation": generation}
                assert client.put(f"{path}/{part}", json=body).is_success
    return folder / "placement.db"


@pytest.fixture
def service(tmp_path, database):
    """A client of a service with these hosts."""
    shutil.copyfile(database, tmp_path / "placement.db")
    url = f"sqlite:///{tmp_path / 'placement.db'}"
    with start_on(url, tmp_path) as application, client_of(application, **NEWEST) as client:
        yield client


def hosts_of(service, query):
    """The hosts of the candidates of a query, in order, and their scores."""
    answer = service.get(f"/allocation_candidates?{query}")
    assert answer.status_code == 200, answer.text
    names = {uuid_of(name): name for name in HOSTS}
    found = answer.json()
    hosts = [names[next(iter(one["allocations"]))] for one in found["allocation_requests"]]
    return hosts, found.get("scores")


def place(service, *consumers, query="resources=VCPU:2", **more):
    """Place consumers by a query."""
    request = {
        "alternatives": [query] if isinstance(query, str) else query,
        "consumers": [uuid_of(one) for one in consumers],
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
    }
    return service.post("/treeclaim/placements", json={"requests": [request]} | more)


def where(answer, status=201):
    """Return the places of consumers, and the consumers without a place."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    hosts = [one["root_providers"][0]["name"] for one in body["placements"]]
    return "".join(hosts), len(body["unplaced"])


def error_of(answer, status):
    """The error of an answer."""
    assert answer.status_code == status, answer.text
    return answer.json()["errors"][0]


# -- section 1 --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["order_by", "preferred", "root_in_tree", "preferred_X"])
def test_below_1_1_the_parameters_are_unknown(service, name):
    answer = service.get(
        f"/allocation_candidates?resources=VCPU:1&{name}=x",
        headers={"openstack-api-version": "placement 1.39"},
    )
    assert name in error_of(answer, 400)["detail"]


# -- section 2 --------------------------------------------------------------------------------


def test_candidates_come_by_descending_score_with_their_scores(service):
    hosts, scores = hosts_of(service, "resources=VCPU:2&order_by=pack")
    assert hosts == ["d", "b", "c", "a"]
    assert scores == [1.0, 0.5, 0.333333333333, 0.25]
    hosts, scores = hosts_of(service, "resources=VCPU:2&order_by=spread&limit=2")
    assert hosts == ["a", "c"]
    assert scores == [0.75, 0.666666666667]


def test_divided_amount_of_a_hold_ignores_units(service):
    """Two devices lend units in steps of 4: a claim of 10 cannot be divided, a hold can."""
    devices = {uuid_of(f"device {number}"): f"device {number}" for number in range(2)}
    inventories = {"FPGA": {"total": 8, "step_size": 4}}
    entries = [{"uuid": uuid_of("stepped"), "name": "stepped", "inventories": {}}]
    entries += [
        {"uuid": device, "name": name, "parent_provider_uuid": uuid_of("stepped")}
        | {"inventories": inventories}
        for device, name in devices.items()
    ]
    assert service.post("/treeclaim/providers", json={"providers": entries}).is_success
    query = "resources=FPGA:10&can_split=FPGA"
    assert where(place(service, "x", query=query, partial=True, dry_run=True), 200) == ("", 1)
    request = {"alternatives": [query], "consumers": [uuid_of("held")], "hold": {"until": None}}
    request |= {"project_id": "p", "user_id": "u", "consumer_type": "TREECLAIM_HOLD"}
    latest = {"openstack-api-version": "placement 1.39, treeclaim latest"}
    body = {"requests": [request], "dry_run": True}
    answer = service.post("/treeclaim/placements", json=body, headers=latest)
    assert answer.status_code == 200, answer.text
    (placement,) = answer.json()["placements"]
    parts = [given["resources"]["FPGA"] for given in placement["allocations"].values()]
    assert sorted(parts) == [2, 8]


def test_heuristic_answer_is_marked_as_approximate(service):
    """A host with 16 devices has far more than 50,000 candidates for ten isolated groups."""
    host, devices = uuid_of("large"), [uuid_of(f"device {number}") for number in range(16)]
    entries = [{"uuid": host, "name": "large", "inventories": {}}]
    for number, device in enumerate(devices):
        inventories = {"FPGA": {"total": 100 + number}}
        entries.append(
            {"uuid": device, "name": f"device {number}", "parent_provider_uuid": host}
            | {"inventories": inventories}
        )
    made = service.post("/treeclaim/providers", json={"providers": entries})
    assert made.is_success, made.text
    suffixes = [f"_{number}" for number in range(10)]
    groups = "&".join(f"resources{suffix}=FPGA:1" for suffix in suffixes)
    query = f"{groups}&isolate={','.join(suffixes)}&limit=2"
    for order, expected in (("spread_providers", True), ("spread", None)):
        ordered = f"{query}&order_by={order}"
        found = service.get(f"/allocation_candidates?{ordered}").json()
        assert found.get("approximate") is expected
        assert len(found["scores"]) == len(found["allocation_requests"]) == 2
        found = service.post("/treeclaim/candidates", json={"alternatives": [ordered]}).json()
        assert found.get("approximate") is expected
        answer = place(service, "consumer", query=ordered, dry_run=True)
        assert answer.status_code == 200, answer.text
        (placement,) = answer.json()["placements"]
        assert placement.get("approximate") is expected


def test_weights_and_preferences_count(service):
    hosts, scores = hosts_of(
        service, f"resources=VCPU:2&order_by=pack,preferred*3&preferred={FAST}"
    )
    assert hosts == ["b", "d", "c", "a"]
    assert scores == [0.875, 0.25, 0.083333333333, 0.0625]
    hosts, scores = hosts_of(service, f"resources=VCPU:2&preferred=!{FAST}*7")
    assert (hosts, scores) == (["a", "c", "d", "b"], [1.0, 1.0, 1.0, 0.0])


def test_without_an_order_there_are_no_scores(service):
    assert hosts_of(service, "resources=VCPU:2") == (["a", "b", "c", "d"], None)


def test_the_anchor_may_be_forced_or_left_out(service):
    root = "resources=VCPU:1&root_in_tree="
    assert hosts_of(service, root + uuid_of("c"))[0] == ["c"]
    assert hosts_of(service, f"{root}in:{uuid_of('c')},{uuid_of('a')}")[0] == ["a", "c"]
    assert hosts_of(service, f"{root}!{uuid_of('c')}")[0] == ["a", "b", "d"]
    assert hosts_of(service, f"{root}!in:{uuid_of('c')},{uuid_of('nobody')}")[0] == ["a", "b", "d"]
    assert hosts_of(service, root + uuid_of("nobody"))[0] == []


def test_an_explanation_knows_the_anchor_and_ignores_the_order(service):
    query = f"resources=VCPU:1&order_by=pack&root_in_tree={uuid_of('nobody')}"
    answer = service.get(f"/allocation_candidates/explain?{query}")
    assert answer.status_code == 200, answer.text
    (step,) = answer.json()["funnel"]
    assert (step["reason"], step["group"]) == ("not_in_tree", None)
    assert (step["trees_before"], step["trees_after"]) == (4, 0)


TWO = "resources_A=VCPU:1&resources_B=VCPU:1"


@pytest.mark.parametrize(
    "query",
    [
        "order_by=best",
        "order_by=",
        "order_by=pack,,spread",
        "order_by=pack:MEMORY_MB",
        "order_by=pack*0",
        "order_by=pack*1001",
        "order_by=pack*x",
        "order_by=near:_A",
        "order_by=near:_A:_A",
        "order_by=near:_A:_C",
        "order_by=preferred",
        "order_by=preferred:X",
        "order_by=shuffle",
        "order_by=shuffle:a:b",
        f"order_by=shuffle:{'x' * 65}",
        "order_by=" + ",".join(["pack"] * 17),
        "preferred_A=",
        "preferred_A=!",
        f"preferred_A={FAST}*1001",
        "preferred_A=CUSTOM_UNKNOWN",
        "root_in_tree=host",
        "order_by=pack&limit=10001",
    ],
)
@pytest.mark.parametrize("path", ["", "/explain"])
def test_what_is_wrong_in_an_order_is_a_bad_value(service, query, path):
    answer = service.get(f"/allocation_candidates{path}?{TWO}&{query}")
    assert error_of(answer, 400)["code"] == "placement.query.bad_value"


@pytest.mark.parametrize("query", ["order_by=pack", f"preferred_A={FAST}", "root_in_tree=x"])
def test_each_may_stand_there_once(service, query):
    answer = service.get(f"/allocation_candidates?{TWO}&{query}&{query}")
    assert error_of(answer, 400)["code"] == "placement.query.duplicate_key"


# -- section 3 --------------------------------------------------------------------------------


def test_the_first_alternative_that_has_a_candidate_is_answered(service):
    ask = ["resources=VCPU:100", "resources=VCPU:8&order_by=pack", "resources=VCPU:1"]
    answer = service.post("/treeclaim/candidates", json={"alternatives": ask})
    assert answer.status_code == 200, answer.text
    assert answer.json()["alternative"] == 1
    assert len(answer.json()["allocation_requests"]) == len(answer.json()["scores"]) == 1
    assert list(answer.json()["provider_summaries"]) == [uuid_of("a")]
    answer = service.post("/treeclaim/candidates", json={"alternatives": ask[:1]})
    assert answer.json() == {
        "alternative": None,
        "allocation_requests": [],
        "provider_summaries": {},
    }


@pytest.mark.parametrize("more", ["&order_by=pack", f"&preferred={FAST}"])
def test_there_are_scores_of_an_ordered_answer_if_there_is_no_candidate_too(service, more):
    ask = {"alternatives": ["resources=VCPU:100", f"resources=VCPU:100{more}"]}
    assert service.post("/treeclaim/candidates", json=ask).json() == {
        "alternative": None,
        "allocation_requests": [],
        "scores": [],
        "provider_summaries": {},
    }
    found = service.get(f"/allocation_candidates?{ask['alternatives'][1]}").json()
    assert found == {"allocation_requests": [], "scores": [], "provider_summaries": {}}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("resources=CUSTOM_NONE:1", "placement.undefined_code"),
        ("resources=VCPU:1&required=CUSTOM_NONE", "placement.undefined_code"),
        ("resources=VCPU:x", "placement.undefined_code"),
        ("resources=VCPU:1&order_by=best", "placement.query.bad_value"),
        ("resources=VCPU:1&preferred=CUSTOM_NONE", "placement.query.bad_value"),
        ("resources=VCPU:1&strange=1", "placement.undefined_code"),
    ],
)
def test_an_error_in_a_query_begins_with_where_it_stands(service, query, code):
    asked = ["resources=VCPU:1", query]
    error = error_of(service.post("/treeclaim/candidates", json={"alternatives": asked}), 400)
    assert "\n\n alternatives[1]: " in error["detail"]
    assert error["code"] == code
    error = error_of(place(service, "x", query=asked), 400)
    assert "\n\n requests[0].alternatives[1]: " in error["detail"]
    requests = {"good": asked[0], "gpu": query}
    error = error_of(service.post("/treeclaim/capacity", json={"requests": requests}), 400)
    assert "\n\n requests.gpu: " in error["detail"]
    assert service.get(f"/allocations/{uuid_of('x')}").json()["allocations"] == {}


# -- section 4 --------------------------------------------------------------------------------


def test_consumers_are_placed_one_after_the_other_in_the_order_of_their_query(service):
    answer = place(service, "1", "2", "3", query="resources=VCPU:4&order_by=spread")
    assert where(answer) == ("aca", 0)
    first = answer.json()["placements"][0]
    assert first == {
        "consumer": uuid_of("1"),
        "alternative": 0,
        "root_providers": [{"uuid": uuid_of("a"), "name": "a"}],
        "allocations": {uuid_of("a"): {"resources": {"VCPU": 4}}},
        "mappings": {"": [uuid_of("a")]},
        "dropped": [],
        "consumer_generation": 1,
    }
    held = service.get(f"/allocations/{uuid_of('1')}").json()
    assert held["project_id"] == "p"
    assert held["consumer_type"] == "INSTANCE"
    assert held["consumer_generation"] == 1
    assert held["allocations"][uuid_of("a")]["resources"] == {"VCPU": 4}


def test_a_providers_generation_moves_by_one_a_call(service):
    before = service.get(f"/resource_providers/{uuid_of('a')}").json()["generation"]
    assert where(place(service, "1", "2", "3")) == ("aaa", 0)
    after = service.get(f"/resource_providers/{uuid_of('a')}").json()["generation"]
    assert after == before + 1


def test_a_call_may_be_repeated(service):
    consumers = "12345"
    assert where(place(service, *consumers[:2])) == ("aa", 0)
    answer = place(service, *consumers)
    assert where(answer) == ("aaaab", 0)
    assert [one["mappings"] is None for one in answer.json()["placements"]] == [True] * 2 + [
        False
    ] * 3
    again = place(service, *consumers)
    assert where(again, 200) == ("aaaab", 0)
    assert all(one["mappings"] is None for one in again.json()["placements"])
    assert all(one["consumer_generation"] == 1 for one in again.json()["placements"])


def test_who_holds_something_else_stops_the_call(service):
    assert where(place(service, "1")) == ("a", 0)
    error = error_of(place(service, "2", "1", query="resources=VCPU:1"), 409)
    assert error["code"] == "treeclaim.consumer_exists"
    assert error["consumers"] == [uuid_of("1")]
    assert "conflict" not in error
    assert service.get(f"/allocations/{uuid_of('2')}").json()["allocations"] == {}
    answer = place(service, "1", query=["resources=VCPU:1", "resources=VCPU:2"])
    assert where(answer, 200) == ("a", 0)
    assert answer.json()["placements"][0]["alternative"] == 1


@pytest.mark.parametrize(
    "other", [{"project_id": "q"}, {"user_id": "v"}, {"consumer_type": "MIGRATION"}]
)
def test_who_holds_as_somebody_else_is_told_and_nothing_is_placed(service, other):
    assert where(place(service, "1")) == ("a", 0)
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"} | other
    request = {"alternatives": ["resources=VCPU:2"], "consumers": [uuid_of("2"), uuid_of("1")]}
    answer = service.post("/treeclaim/placements", json={"requests": [request | owner]})
    error = error_of(answer, 409)
    assert error["code"] == "treeclaim.consumer_exists"
    assert error["consumers"] == [uuid_of("1")]
    assert service.get(f"/allocations/{uuid_of('2')}").json()["allocations"] == {}


def test_it_is_all_or_nothing_unless_partial(service):
    error = error_of(place(service, "1", "2", "3", query="resources=VCPU:5"), 409)
    assert error["code"] == "treeclaim.unplaced"
    assert error["unplaced"] == [uuid_of("3")]
    assert service.get(f"/allocations/{uuid_of('1')}").json()["allocations"] == {}
    answer = place(service, "1", "2", "3", query="resources=VCPU:5", partial=True)
    assert where(answer) == ("ac", 1)
    assert where(place(service, "4", query="resources=VCPU:50", partial=True), 200) == ("", 1)


def test_a_dry_run_writes_nothing(service):
    answer = place(service, "1", dry_run=True)
    assert where(answer, 200) == ("a", 0)
    assert answer.json()["placements"][0]["consumer_generation"] is None
    assert service.get(f"/allocations/{uuid_of('1')}").json()["allocations"] == {}


def test_no_domain_gets_beyond_its_most(service):
    rules = [{"domains": "tree", "max_per_domain": 1}]
    assert where(place(service, *"1234", rules=rules)) == ("abcd", 0)
    racks = [{"domains": [uuid_of("r1"), uuid_of("r2")], "max_per_domain": 1}]
    answer = place(service, *"567", rules=racks, partial=True)
    assert where(answer) == ("ac", 1)
    soft = [racks[0] | {"soft": True}]
    answer = place(service, *"8", rules=[soft[0] | {"with": [uuid_of("5"), uuid_of("6")]}])
    assert where(answer) == ("a", 0)
    assert answer.json()["placements"][0]["dropped"] == [0]


def test_domains_stay_balanced(service):
    racks = [{"domains": [uuid_of("r1"), uuid_of("r2")], "max_skew": 1}]
    query = "resources=VCPU:1"
    assert where(place(service, *"1234", query=query, rules=racks)) == ("acac", 0)


def test_a_group_can_grow_beside_others(service):
    assert where(place(service, "1", "2")) == ("aa", 0)
    rules = [{"domains": "tree", "max_per_domain": 2, "with": [uuid_of("1"), uuid_of("2")]}]
    assert where(place(service, "3", rules=rules)) == ("b", 0)


def test_all_can_be_in_one_domain(service):
    racks = [uuid_of("r2"), uuid_of("r1")]
    rules = [{"domains": racks, "same_domain": True}]
    answer = place(service, *"123", query="resources=VCPU:3&order_by=pack", rules=rules)
    assert where(answer) == ("baa", 0)
    error = error_of(place(service, *"4567", query="resources=VCPU:3", rules=rules), 409)
    assert error["unplaced"] == [uuid_of("6"), uuid_of("7")]


def test_rules_are_for_the_requests_that_they_name(service):
    def request(number, consumers):
        return {
            "alternatives": ["resources=VCPU:1"],
            "consumers": [uuid_of(one) for one in consumers],
            "project_id": "p",
            "user_id": "u",
            "consumer_type": "INSTANCE",
        }

    rules = [{"domains": "tree", "max_per_domain": 1, "requests": [1]}]
    body = {"requests": [request(0, "12"), request(1, "34")], "rules": rules}
    assert where(service.post("/treeclaim/placements", json=body)) == ("aaab", 0)


def test_why_the_first_finds_nothing_is_told(service):
    rules = [
        {"domains": "tree", "max_per_domain": 5},
        {"domains": [uuid_of("r2")], "max_per_domain": 1},
    ]
    error = error_of(place(service, *"123", rules=rules, explain=True), 409)
    assert error["unplaced"] == [uuid_of("2"), uuid_of("3")]
    explanation = error["explanation"]
    step = explanation["funnel"][-1]
    assert (step["reason"], step["detail"]) == ("rule", {"rule": 1})
    assert (step["trees_before"], step["trees_after"]) == (4, 0)
    assert (explanation["feasible"], explanation["trees"]["matching"]) == (False, 0)
    answer = place(service, *"1", query="resources=VCPU:20", partial=True, explain=True)
    assert answer.json()["explanation"]["funnel"][-1]["reason"] == "capacity"
    assert "explanation" not in place(service, "9", explain=True).json()


def test_uuids_are_normalised(service):
    body = uuid_of("1").replace("-", "").upper()
    request = {
        "alternatives": ["resources=VCPU:2"],
        "consumers": [body],
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
    }
    answer = service.post("/treeclaim/placements", json={"requests": [request]})
    assert answer.json()["placements"][0]["consumer"] == uuid_of("1")
    error_of(
        service.post(
            "/treeclaim/placements",
            json={"requests": [request | {"consumers": [body, uuid_of("1")]}]},
        ),
        400,
    )


@pytest.mark.parametrize(
    "rule",
    [
        {"domains": "tree"},
        {"domains": "rack", "max_per_domain": 1},
        {"domains": [], "max_per_domain": 1},
        {"domains": "tree", "max_per_domain": 0},
        {"domains": "tree", "max_skew": 1001},
        {"domains": "tree", "max_skew": 1, "max_per_domain": 1},
        {"domains": "tree", "same_domain": False},
        {"domains": "tree", "same_domain": True, "soft": True},
        {"domains": "tree", "max_skew": 1, "requests": [1]},
        {"domains": "tree", "max_skew": 1, "with": [uuid_of("1")]},
        {"domains": "tree", "max_skew": 1, "strange": 1},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(service, rule):
    error_of(place(service, "1", rules=[rule]), 400)


def test_calls_beyond_a_bound_are_refused(service):
    affine = {"domains": "tree", "same_domain": True}
    error_of(place(service, "1", rules=[affine, affine]), 400)
    error_of(place(service, "1", rules=[affine], partial=True), 400)
    soft = {"domains": "tree", "max_per_domain": 1}
    error_of(place(service, "1", rules=[soft] * 17), 400)
    error_of(place(service, *map(str, range(1001))), 400)
    error_of(place(service), 400)
    error_of(place(service, "1", query=["resources=VCPU:1"] * 17), 400)
    error_of(place(service, "1", strange=True), 400)


# -- section 5 --------------------------------------------------------------------------------


def test_how_many_fit_is_told(service):
    place(service, "1", query="resources=VCPU:3")
    body = {
        "requests": {"two": "resources=VCPU:2", "six": "resources=VCPU:6"},
        "domains": "tree",
        "limit": 2,
    }
    answer = service.post("/treeclaim/capacity", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["capacity"] == {
        "two": {
            "fits": 8,
            "at_most": 8,
            "when_empty": 10,
            "complete": True,
            "domains": [
                {"uuid": uuid_of("c"), "name": "c", "fits": 3},
                {
                    "uuid": uuid_of("b"),
                    "name": "b",
                    "fits": 2,
                },  # a has as many, and a greater UUID
            ],
        },
        "six": {
            "fits": 1,
            "at_most": 1,
            "when_empty": 2,
            "complete": True,
            "domains": [{"uuid": uuid_of("c"), "name": "c", "fits": 1}],
        },
    }
    body = {"requests": {"x": "resources=VCPU:2"}, "domains": [uuid_of("r2"), uuid_of("r1")]}
    found = service.post("/treeclaim/capacity", json=body).json()["capacity"]["x"]
    assert found["domains"] == [
        {"uuid": uuid_of("r1"), "name": None, "fits": 4},
        {"uuid": uuid_of("r2"), "name": None, "fits": 3},
    ]


def test_a_query_is_percent_encoded_as_in_a_url(service):
    query = f"resources={quote('VCPU:2')}&order_by=pack{quote('*')}2"
    assert where(place(service, "1", query=query)) == ("d", 0)


# -- section 6 --------------------------------------------------------------------------------


def claim(service, host, amount, consumer="1", generation=None, **more):
    """Claim VCPU of a host."""
    body = {
        "allocations": {uuid_of(host): {"resources": {"VCPU": amount} | more}},
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
        "consumer_generation": generation,
    }
    return service.put(f"/allocations/{uuid_of(consumer)}", json=body)


def conflict_of(answer, code):
    """The conflict that an answer tells, and its code."""
    error = error_of(answer, 409)
    assert error["code"] == code
    return error["conflict"]


def test_a_refused_claim_says_what_was_in_the_way(service):
    assert claim(service, "a", 5).is_success
    in_a = {"provider": uuid_of("a"), "resource_class": "VCPU"}
    assert conflict_of(claim(service, "a", 4, "2"), "treeclaim.over_capacity") == {
        "kind": "over_capacity",
        **in_a,
        "requested": 4,
        "free": 3,
    }
    assert (
        conflict_of(claim(service, "a", 9, generation=1), "treeclaim.over_capacity")["free"] == 8
    )
    assert conflict_of(claim(service, "a", 1, generation=7), "placement.concurrent_update") == {
        "kind": "consumer_generation",
        "uuid": uuid_of("1"),
        "expected": 1,
        "given": 7,
    }
    missing = claim(service, "a", 1, "2", MEMORY_MB=1)
    assert conflict_of(missing, "treeclaim.no_inventory") == {
        "kind": "no_inventory",
        "provider": uuid_of("a"),
        "resource_class": "MEMORY_MB",
    }


def test_so_does_a_refused_change_of_inventories(service):
    assert claim(service, "a", 5).is_success
    path = f"/resource_providers/{uuid_of('a')}"
    generation = service.get(path).json()["generation"]
    body = {"inventories": {}, "resource_provider_generation": generation}
    answer = service.put(f"{path}/inventories", json=body)
    assert conflict_of(answer, "placement.inventory.inuse") == {
        "kind": "inventory_in_use",
        "provider": uuid_of("a"),
        "resource_class": "VCPU",
        "used": 5,
    }
    answer = service.put(f"{path}/inventories", json=body | {"resource_provider_generation": 99})
    assert conflict_of(answer, "placement.concurrent_update") == {
        "kind": "provider_generation",
        "uuid": uuid_of("a"),
        "expected": generation,
        "given": 99,
    }
    answer = service.post(f"{path}/inventories", json={"resource_class": "VCPU", "total": 1})
    assert conflict_of(answer, "placement.concurrent_update")["kind"] == "inventory_exists"
    inventory = {"total": 8, "min_unit": 2, "max_unit": 6, "step_size": 2}
    body = inventory | {"resource_provider_generation": generation}
    assert service.put(f"{path}/inventories/VCPU", json=body).is_success
    assert conflict_of(claim(service, "a", 3, "2"), "treeclaim.amount_unit") == {
        "kind": "amount_unit",
        "provider": uuid_of("a"),
        "resource_class": "VCPU",
        "requested": 3,
        "min_unit": 2,
        "max_unit": 6,
        "step_size": 2,
    }


def test_below_1_1_and_for_other_conflicts_nothing_is_added(service):
    service.headers["openstack-api-version"] = "placement 1.39"
    error = error_of(claim(service, "a", 9), 409)
    assert (error["code"], "conflict" in error) == ("placement.undefined_code", False)
    service.headers.update(NEWEST)
    error = error_of(service.post("/resource_providers", json={"name": "a"}), 409)
    assert (error["code"], "conflict" in error) == ("placement.duplicate_name", False)
