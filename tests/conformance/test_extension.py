# SPDX-License-Identifier: Apache-2.0
"""The `treeclaim` extension over HTTP (contract page 97, sections 1 to 3)."""

import uuid

import pytest

from tests.service import client_of, make_application

VERSION_HEADER = "OpenStack-API-Version"
EXTENDED = "placement 1.39, treeclaim 1.0"
_NAMESPACE = uuid.UUID(int=97)


def uuid_of(name):
    return str(uuid.uuid5(_NAMESPACE, name))


# name: parent, inventories, traits, aggregates
WORLD = {
    "one": (None, {"DISK_GB": 100}, ["COMPUTE_NODE"], ["rack1"]),
    "one_numa0": ("one", {"VCPU": 4, "MEMORY_MB": 4096}, ["HW_NUMA_ROOT"], []),
    "one_numa1": ("one", {"VCPU": 4, "MEMORY_MB": 4096}, ["HW_NUMA_ROOT"], []),
    "one_gpu0": ("one_numa0", {"VGPU": 2}, ["CUSTOM_A100"], []),
    "one_gpu1": ("one_numa1", {"VGPU": 2}, ["CUSTOM_H100"], []),
    "two": (None, {"VCPU": 16, "MEMORY_MB": 8192, "DISK_GB": 10}, ["COMPUTE_NODE"], ["rack2"]),
    "two_gpu0": ("two", {"VGPU": 1}, ["CUSTOM_A100"], []),
    "three": (None, {"VCPU": 2}, [], []),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A client of a service that holds the world."""
    with client_of(make_application(tmp_path_factory.mktemp("extension"))) as client:
        for trait in ("CUSTOM_A100", "CUSTOM_H100"):
            assert client.put(f"/traits/{trait}").is_success
        for name, one in WORLD.items():
            create(client, name, *one)
        yield client


def create(client, name, parent, inventories, traits, aggregates):
    body = {
        "name": name,
        "uuid": uuid_of(name),
        "parent_provider_uuid": parent and uuid_of(parent),
    }
    assert client.post("/resource_providers", json=body).is_success
    for part, value in (
        ("inventories", {one: {"total": total} for one, total in inventories.items()}),
        ("traits", traits),
        ("aggregates", [uuid_of(one) for one in aggregates]),
    ):
        path = f"/resource_providers/{uuid_of(name)}"
        generation = client.get(path).json()["generation"]
        body = {part: value, "resource_provider_generation": generation}
        assert client.put(f"{path}/{part}", json=body).is_success


def ask(service, query, path="/allocation_candidates", version=EXTENDED):
    """Send a query in which <name> stands for a uuid."""
    for name in (*WORLD, "rack1", "rack2", "nobody"):
        query = query.replace(f"<{name}>", uuid_of(name))
    return service.get(f"{path}?{query}", headers={"openstack-api-version": version})


def found(service, query):
    """The candidates of a query: sets of (provider, class, amount)."""
    answer = ask(service, query)
    assert answer.status_code == 200, answer.text
    names = {uuid_of(name): name for name in WORLD}
    return [
        {
            (names[provider], resource_class, amount)
            for provider, given in one["allocations"].items()
            for resource_class, amount in given["resources"].items()
        }
        for one in answer.json()["allocation_requests"]
    ]


def providers(candidates):
    """The names of the providers of each candidate, sorted."""
    return sorted(sorted({name for name, _, _ in one}) for one in candidates)


# -- section 1: opting in ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("placement 1.39, treeclaim 1.0", "placement 1.39, treeclaim 1.0"),
        ("treeclaim 1.0, placement 1.39", "placement 1.39, treeclaim 1.0"),
        ("placement latest, treeclaim latest", "placement 1.39, treeclaim 1.0"),
        ("placement 1.39", "placement 1.39"),
        ("placement 1.0", "placement 1.0"),
    ],
    ids=str,
)
def test_the_answer_carries_the_versions_that_were_asked_for(service, asked, answered):
    answer = service.get("/resource_classes/VCPU", headers={"openstack-api-version": asked})
    assert answer.headers["openstack-api-version"] == answered
    assert "openstack-api-version" in answer.headers["vary"]


@pytest.mark.parametrize(
    "asked",
    [
        "treeclaim 1.0",
        "placement 1.38, treeclaim 1.0",
        "placement 1.39, treeclaim 1.1",
        "placement 1.39, treeclaim 1.9",
        "placement 1.39, treeclaim 2.0",
        "placement 1.39, treeclaim soon",
    ],
    ids=str,
)
def test_other_pairings_and_versions_are_not_acceptable(service, asked):
    answer = service.get("/traits", headers={"openstack-api-version": asked})
    assert answer.status_code == 406
    (error,) = answer.json()["errors"]
    assert "treeclaim" in error["detail"]
    assert (error["min_version"], error["max_version"]) == ("1.0", "1.0")


def test_the_versions_are_listed_without_a_token(service):
    answer = service.get("/treeclaim", headers={"x-auth-token": ""})
    (version,) = answer.json()["versions"]
    assert (version["min_version"], version["max_version"]) == ("1.0", "1.0")
    root = service.get("/").json()
    assert [one["max_version"] for one in root["versions"]] == ["1.39"]


@pytest.mark.parametrize(
    "parameter",
    [
        "root_member_of=<rack1>",
        "isolate=_A",
        "in_subtree=<one>",
        "can_split=VCPU",
        "split_policy=even",
    ],
    ids=lambda one: one.partition("=")[0],
)
def test_without_the_extension_its_parameters_do_not_exist(service, parameter):
    query = f"resources=VCPU:1&resources_A=VGPU:1&{parameter}"
    answer = ask(service, query, version="placement 1.39")
    assert answer.status_code == 400
    name = parameter.partition("=")[0]
    assert f"'{name}' does not match any of the regexes" in answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    "query",
    [
        "resources_A=VCPU:1&resources_B=VGPU:1",
        "resources=VCPU:1&root_required=in:COMPUTE_NODE,CUSTOM_A100",
        "resources=VCPU:1&in_tree=in:<one>",
    ],
    ids=["no group_policy", "any root trait", "list of trees"],
)
def test_without_the_extension_known_parameters_are_as_they_were(service, query):
    assert ask(service, query, version="placement 1.39").status_code == 400
    assert ask(service, query).status_code == 200


@pytest.mark.parametrize("path", ["/treeclaim/candidates", "/treeclaim/holds", "/treeclaim/else"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_a_path_of_the_extension_without_the_opt_in_names_the_header(service, method, path):
    answer = service.request(method, path, headers={VERSION_HEADER: "placement 1.39"})
    assert answer.status_code == 404
    detail = answer.json()["errors"][0]["detail"]
    assert "OpenStack-API-Version: placement 1.39, treeclaim 1.0" in detail
    opted_in = detail.rpartition(": ")[2]
    followed = service.post("/treeclaim/candidates", headers={VERSION_HEADER: opted_in})
    assert followed.status_code != 404


def test_without_the_extension_there_is_no_explanation(service):
    path = "/allocation_candidates/explain"
    answer = ask(service, "resources=VCPU:1", path, "placement 1.39")
    unknown = ask(service, "resources=VCPU:1", "/allocation_candidates/else", "placement 1.39")
    assert (answer.status_code, answer.json()["errors"][0]["title"]) == (404, "Not Found")
    assert unknown.json()["errors"][0]["detail"] == answer.json()["errors"][0]["detail"]
    assert service.post(path).status_code == 404


# -- section 2: parameters -----------------------------------------------------------------


def test_group_policy_is_optional(service):
    query = "resources_A=VGPU:1&resources_B=VGPU:1&in_tree_A=<one>"
    assert len(found(service, query)) == len(found(service, f"{query}&group_policy=none")) == 4


@pytest.mark.parametrize(
    ("condition", "trees"),
    [
        ("root_required=in:COMPUTE_NODE,CUSTOM_A100", ["one", "two"]),
        ("root_required=COMPUTE_NODE&root_required=!CUSTOM_A100", ["one", "two"]),
        ("root_required=!COMPUTE_NODE", ["three"]),
        ("root_member_of=<rack1>", ["one"]),
        ("root_member_of=in:<rack1>,<rack2>", ["one", "two"]),
        ("root_member_of=!<rack1>", ["three", "two"]),
        ("root_member_of=in:<rack1>,<rack2>&root_member_of=!in:<rack1>,<nobody>", ["two"]),
        ("in_tree=in:<one_gpu0>,<three>", ["one", "three"]),
        ("in_subtree=<one_numa1>", ["one"]),
        ("in_subtree=in:<one_numa1>,<two>", ["one", "two"]),
        ("in_subtree=<nobody>", []),
    ],
    ids=lambda one: one.replace(":", " ") if isinstance(one, str) else "",
)
def test_conditions_on_roots_trees_and_subtrees(service, condition, trees):
    candidates = found(service, f"resources=VCPU:1&{condition}")
    assert sorted({name.partition("_")[0] for one in candidates for name, _, _ in one}) == trees


def test_in_subtree_holds_for_each_provider_of_the_unsuffixed_group(service):
    query = "resources=VCPU:1,VGPU:1&in_subtree=<one_numa0>"
    assert providers(found(service, query)) == [["one_gpu0", "one_numa0"]]
    query = "resources_A=VGPU:1&in_subtree_A=in:<one_numa1>,<two>"
    assert providers(found(service, query)) == [["one_gpu1"], ["two_gpu0"]]


def test_isolate_concerns_the_named_groups_alone(service):
    query = "resources_A=VCPU:1&resources_B=VCPU:1&resources_C=VCPU:1&in_tree_A=<one>"
    for one in found(service, f"{query}&isolate=_A"):
        shared = [amount for _, _, amount in one]
        assert sorted(shared) == [1, 2]
    assert len(found(service, f"{query}&isolate=_A&isolate=_B,_C")) == 0
    assert len(found(service, query)) == 8


def test_groups_can_be_kept_out_of_a_subtree(service):
    query = "resources_CPU=VCPU:1&resources_GPU=VGPU:1&same_subtree=_CPU,!_GPU"
    assert providers(found(service, query)) == [
        ["one_gpu0", "one_numa1"],
        ["one_gpu1", "one_numa0"],
    ]
    bare = "resources_CPU=VCPU:1&required_GPU=CUSTOM_H100&same_subtree=_CPU,!_GPU"
    assert providers(found(service, bare)) == [["one_numa0"]]


def test_an_amount_is_split_over_the_providers_of_a_tree(service):
    whole = found(service, "resources=VCPU:6&can_split=VCPU")
    assert sorted(map(sorted, whole)) == [
        [("one_numa0", "VCPU", 4), ("one_numa1", "VCPU", 2)],
        [("two", "VCPU", 6)],
    ]
    even = found(service, "resources=VCPU:6&can_split=VCPU&split_policy=even&in_tree=<one>")
    assert even == [{("one_numa0", "VCPU", 3), ("one_numa1", "VCPU", 3)}]
    assert len(found(service, "resources=VCPU:3&can_split=VCPU")) == 3


def test_a_split_leaves_other_groups_what_they_take(service):
    query = "resources=VCPU:6&can_split=VCPU&resources_A=VCPU:2&in_tree=<one>&in_tree_A=<one>"
    candidates = found(service, query)
    assert sorted(map(sorted, candidates)) == [
        [("one_numa0", "VCPU", 4), ("one_numa1", "VCPU", 4)],
        [("one_numa0", "VCPU", 4), ("one_numa1", "VCPU", 4)],
    ]
    mappings = [one["mappings"] for one in ask(service, query).json()["allocation_requests"]]
    assert [sorted(one[""]) for one in mappings] == [
        sorted([uuid_of("one_numa0"), uuid_of("one_numa1")])
    ] * 2


def test_a_split_candidate_can_be_claimed(service):
    query = "resources=VCPU:6,MEMORY_MB:6000&can_split=VCPU,MEMORY_MB&in_tree=<one>&limit=1"
    answer = ask(service, query).json()
    (candidate,) = answer["allocation_requests"]
    consumer = f"/allocations/{uuid.uuid4()}"
    body = candidate | {
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert service.put(consumer, json=body).status_code == 204
    assert service.get(consumer).json()["allocations"].keys() == candidate["allocations"].keys()
    assert service.delete(consumer).status_code == 204
    assert uuid_of("one") in answer["provider_summaries"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("isolate=_X", "isolate"),
        ("isolate=_A&group_policy=none", "isolate"),
        ("isolate=", "isolate"),
        ("same_subtree=!_A,!_B", "same_subtree"),
        ("same_subtree=_A,!_A", "same_subtree"),
        ("same_subtree=_A,!", "same_subtree"),
        ("same_subtree=_A,!_X", "same_subtree"),
        ("in_tree=in:", "in_tree"),
        ("in_tree_A=in:word", "in_tree"),
        ("in_subtree=word", "in_subtree"),
        ("in_subtree_A=!<one>", "in_subtree"),
        ("can_split=VGPU", "can_split"),
        ("can_split=", "can_split"),
        ("split_policy=some", "split_policy"),
        ("root_member_of=word", "root_member_of"),
        ("root_required=COMPUTE_NODE,!COMPUTE_NODE", "root_required"),
        ("root_required=in:", "required"),
        ("resources_D=", "resources"),
    ],
    ids=lambda one: one.replace(":", " "),
)
def test_what_cannot_be_read_is_refused_by_name(service, wrong, named):
    query = f"resources=VCPU:1&resources_A=VGPU:1&resources_B=VGPU:1&{wrong}"
    answer = ask(service, query)
    assert answer.status_code == 400, answer.text
    detail = answer.json()["errors"][0]["detail"]
    assert named in detail or named == "split_policy", detail


# -- section 3: explain --------------------------------------------------------------------


def explain(service, query):
    answer = ask(service, query, "/allocation_candidates/explain")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_funnel_tells_step_by_step_what_rules_trees_out(service):
    told = explain(service, "resources_CPU=VCPU:8&resources_GPU=VGPU:1&required_GPU=CUSTOM_H100")
    assert (told["feasible"], told["fits_when_empty"]) == (False, False)
    assert told["trees"] == {"considered": 3, "matching": 0}
    assert told["funnel"] == [
        {
            "group": "_CPU",
            "reason": "capacity",
            "detail": {"resource_class": "VCPU", "requested": 8},
            "trees_before": 3,
            "trees_after": 1,
        },
        {
            "group": None,
            "reason": "no_common_tree",
            "detail": {"groups": ["_CPU", "_GPU"]},
            "trees_before": 1,
            "trees_after": 0,
        },
    ]
    assert told["advice"] == [
        "Without resources_CPU=VCPU:8 1 tree would match.",
        "Without the limit of free capacity for resources_CPU=VCPU:8 1 tree would match.",
        "Without required_GPU=CUSTOM_H100 1 tree would match.",
    ]


@pytest.mark.slow
def test_the_nearest_trees_come_with_all_that_blocks_them(service):
    query = (
        "resources_CPU=VCPU:1&resources_GPU=VGPU:1&required_GPU=CUSTOM_H100"
        "&required_CPU=HW_NUMA_ROOT&root_member_of=<rack2>"
    )
    (two,) = explain(service, f"{query}&tree=<two>")["nearest"]
    assert two["root_provider"] == {"uuid": uuid_of("two"), "name": "two"}
    blocked = [(one["group"], one["reason"]) for one in two["blocked_by"]]
    assert blocked == [("_CPU", "trait_missing"), ("_GPU", "trait_missing")]
    (gpu,) = two["blocked_by"][1]["providers"]
    assert gpu == {
        "uuid": uuid_of("two_gpu0"),
        "name": "two_gpu0",
        "resource_class": "VGPU",
        "requested": 1,
        "free": 1,
    }
    nearest = explain(service, f"{query}&nearest=2")["nearest"]
    assert [one["root_provider"]["name"] for one in nearest] == ["one", "two"]
    assert [one["reason"] for one in nearest[0]["blocked_by"]] == ["root_member_of"]
    assert explain(service, f"{query}&nearest=0")["nearest"] == []


@pytest.mark.slow
def test_constraints_between_groups_are_told_last(service):
    query = (
        "resources_CPU=VCPU:1&resources_GPU=VGPU:1&required_GPU=CUSTOM_H100&same_subtree=_CPU,_GPU"
        "&in_subtree_CPU=<one_numa0>"
    )
    told = explain(service, query)
    assert told["funnel"][-1]["reason"] == "same_subtree"
    assert told["funnel"][-1]["detail"] == {"groups": ["_CPU", "_GPU"]}
    assert "Without same_subtree=_CPU,_GPU 1 tree would match." in told["advice"]
    together = explain(service, "resources=VGPU:2&resources_A=VGPU:1&in_tree_A=<two>")
    assert together["trees"]["matching"] == 0
    combined = explain(
        service, "resources_A=VGPU:2&resources_B=VGPU:2&resources_C=VGPU:2&isolate=_A"
    )
    assert combined["funnel"][-1]["reason"] == "combined_capacity"


def test_what_would_fit_an_empty_cloud_is_told_apart(service):
    consumer = f"/allocations/{uuid.uuid4()}"
    body = {
        "allocations": {uuid_of("two"): {"resources": {"VCPU": 16}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert service.put(consumer, json=body).status_code == 204
    told = explain(service, "resources=VCPU:10")
    assert service.delete(consumer).status_code == 204
    assert (told["feasible"], told["fits_when_empty"]) == (False, True)


def test_a_feasible_request_gets_the_same_document(service):
    told = explain(service, "resources=VGPU:1")
    assert told["feasible"]
    assert told["trees"] == {"considered": 3, "matching": 2}
    assert told["advice"] == []
    (matching,) = explain(service, "resources=VGPU:1&tree=<one_gpu0>")["nearest"]
    assert matching == {
        "root_provider": {"uuid": uuid_of("one"), "name": "one"},
        "blocked_by": [],
    }


@pytest.mark.parametrize(
    "wrong",
    [
        "nearest=51",
        "nearest=-1",
        "nearest=many",
        "tree=word",
        "tree=<nobody>",
        "limit=0",
        "other=1",
    ],
)
def test_what_cannot_be_explained_is_refused(service, wrong):
    answer = ask(service, f"resources=VCPU:1&{wrong}", "/allocation_candidates/explain")
    assert answer.status_code == 400


def test_unknown_names_are_refused_as_by_the_search(service):
    for query in ("resources=NOTHING:1", "resources=VCPU:1&required=CUSTOM_NOTHING"):
        one = ask(service, query)
        other = ask(service, query, "/allocation_candidates/explain")
        assert one.status_code == other.status_code == 400
        assert one.json()["errors"][0]["detail"] == other.json()["errors"][0]["detail"]


def test_404_elsewhere_names_no_header(service):
    answer = service.get("/nowhere", headers={"openstack-api-version": "placement 1.39"})
    assert "treeclaim" not in answer.json()["errors"][0]["detail"]
