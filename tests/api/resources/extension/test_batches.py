# SPDX-License-Identifier: Apache-2.0
"""Applying in bulk (contract page 99, section 8)."""

import itertools
import random

import pytest

from tests.api.resources.extension.clouds import (
    AGGREGATES,
    CLASSES,
    TRAITS,
    cloud_on,
    uuid_of,
)
from tests.api.resources.extension.test_pages_and_writers import busy
from tests.databases import EACH_DATABASE

PATH = "/treeclaim/providers"
PARTS = {"include": "inventories,traits,aggregates"}
NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=EACH_DATABASE)
def shared_cloud(request, tmp_path_factory):
    with cloud_on(request.param, tmp_path_factory.mktemp("cloud")) as cloud:
        cloud.client.put("/traits/CUSTOM_BLUE")
        yield cloud


@pytest.fixture
def cloud(shared_cloud):
    """A cloud without providers."""
    everything = shared_cloud.ask(PATH, include="allocations")["providers"]
    consumers = {consumer for one in everything for consumer in one["allocations"]}
    for consumer in consumers:
        assert shared_cloud.client.delete(f"/allocations/{consumer}").is_success
    left = everything
    while left:
        left = [
            one
            for one in left
            if shared_cloud.client.delete(f"/resource_providers/{one['uuid']}").status_code == 409
        ]
    shared_cloud.providers.clear()
    shared_cloud.consumers.clear()
    return shared_cloud


def entry(name, **more):
    return {"uuid": uuid_of(name), "name": name, **more}


def applied(cloud, *entries, **more):
    return cloud.post(PATH, {"providers": list(entries), **more})["providers"]


def refused(cloud, *entries, status=400, **more):
    """What a refusal tells is wrong."""
    body = {"providers": list(entries), **more}
    errors = cloud.post(PATH, body, status=status)["errors"]
    return [error["detail"].partition("\n\n ")[2] for error in errors]


def listed(cloud):
    return cloud.ask(PATH, **PARTS)["providers"]


def by_name(cloud):
    return {one["name"]: one for one in listed(cloud)}


def amounts(**given):
    return {
        "total": 1,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 2147483647,
        "step_size": 1,
        "allocation_ratio": 1.0,
        "consumes": [],
    } | given


def test_providers_are_made_with_all_that_belongs_to_them(cloud):
    made = applied(
        cloud,
        entry("bare"),
        entry(
            "full",
            inventories={"VCPU": {"total": 8, "allocation_ratio": 2.0}, "DISK_GB": {"total": 5}},
            traits=[TRAITS[1], TRAITS[0]],
            aggregates=[AGGREGATES[1], AGGREGATES[0]],
        ),
    )
    assert made == [
        {"uuid": uuid_of("bare"), "generation": 0, "result": "created", "changed": []},
        {
            "uuid": uuid_of("full"),
            "generation": 1,
            "result": "created",
            "changed": ["inventories", "traits", "aggregates"],
        },
    ]
    full = by_name(cloud)["full"]
    assert full["inventories"] == {
        "VCPU": amounts(total=8, allocation_ratio=2.0),
        "DISK_GB": amounts(total=5),
    }
    assert sorted(full["traits"]) == sorted(TRAITS[:2])
    assert full["aggregates"] == sorted(AGGREGATES[:2])
    assert full["generation"] == 1


def test_what_an_entry_does_not_name_stays_and_an_empty_value_empties(cloud):
    applied(
        cloud,
        entry(
            "host",
            inventories={"VCPU": {"total": 8}, "DISK_GB": {"total": 5}},
            traits=[TRAITS[0]],
            aggregates=[AGGREGATES[0]],
        ),
    )
    before = by_name(cloud)["host"]
    (answer,) = applied(cloud, {"name": "host", "traits": []})
    assert answer["result"] == "changed"
    assert answer["changed"] == ["traits"]
    after = by_name(cloud)["host"]
    assert after == {**before, "traits": [], "generation": before["generation"] + 1}
    (answer,) = applied(
        cloud, entry("host", inventories={"VCPU": {"total": 9}}, aggregates=[AGGREGATES[1]])
    )
    assert answer["changed"] == ["inventories", "aggregates"]
    after = by_name(cloud)["host"]
    assert after["inventories"] == {"VCPU": amounts(total=9)}
    assert after["aggregates"] == [AGGREGATES[1]]
    (answer,) = applied(cloud, entry("host", inventories={}, aggregates=[]))
    after = by_name(cloud)["host"]
    assert (after["inventories"], after["aggregates"]) == ({}, [])


def test_what_is_so_already_is_unchanged(cloud):
    applied(cloud, entry("host", inventories={"VCPU": {"total": 8}}, traits=[TRAITS[0]]))
    before = listed(cloud)
    (answer,) = applied(cloud, *before)
    assert answer == {
        "uuid": uuid_of("host"),
        "generation": before[0]["generation"],
        "result": "unchanged",
        "changed": [],
    }
    assert listed(cloud) == before


def test_parents_may_be_entries_of_the_same_call_in_any_order(cloud):
    names = ["leaf", "middle", "top", "other"]
    parents = {"leaf": uuid_of("middle"), "middle": uuid_of("top"), "top": None}
    answer = applied(
        cloud, *(entry(name, parent_provider_uuid=parents.get(name)) for name in names)
    )
    assert [one["uuid"] for one in answer] == [uuid_of(name) for name in names]
    shown = by_name(cloud)
    for name in names[:3]:
        assert shown[name]["parent_provider_uuid"] == parents[name]
        assert shown[name]["root_provider_uuid"] == uuid_of("top")
    applied(cloud, entry("below", parent_provider_uuid=uuid_of("leaf")))
    assert by_name(cloud)["below"]["root_provider_uuid"] == uuid_of("top")


def test_providers_are_renamed_and_moved_with_their_subtrees(cloud):
    applied(
        cloud,
        entry("a"),
        entry("b", parent_provider_uuid=uuid_of("a")),
        entry("c", parent_provider_uuid=uuid_of("b")),
    )
    answer = applied(
        cloud,
        {"uuid": uuid_of("b"), "name": "b2", "parent_provider_uuid": uuid_of("new")},
        entry("new"),
    )
    assert [one["result"] for one in answer] == ["changed", "created"]
    assert answer[0]["changed"] == ["name", "parent_provider_uuid"]
    shown = by_name(cloud)
    assert shown["b2"]["root_provider_uuid"] == uuid_of("new")
    assert shown["c"]["root_provider_uuid"] == uuid_of("new")
    (answer,) = applied(cloud, {"name": "b2", "parent_provider_uuid": None})
    assert by_name(cloud)["c"]["root_provider_uuid"] == uuid_of("b")


def test_missing_names_are_made_where_that_is_asked_for(cloud):
    number = next(NUMBERS)
    trait, resource_class = f"CUSTOM_T{number}", f"CUSTOM_C{number}"
    new = entry("host", traits=[trait], inventories={resource_class: {"total": 1}})
    lines = refused(cloud, new)
    assert len(lines) == 2
    assert all(line.startswith("providers[0]: ") for line in lines)
    assert listed(cloud) == []
    (answer,) = applied(cloud, new, create_names=True)
    assert answer["result"] == "created"
    assert by_name(cloud)["host"]["traits"] == [trait]
    assert refused(cloud, entry("x", traits=["NOT_CUSTOM"]), create_names=True)


def test_all_that_is_wrong_is_told_at_once_and_nothing_is_done(cloud):
    applied(cloud, entry("here", inventories={"VCPU": {"total": 4}}))
    cloud.providers.append(uuid_of("here"))
    body = {
        "allocations": {uuid_of("here"): {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert cloud.client.put(f"/allocations/{uuid_of('consumer')}", json=body).is_success
    before = listed(cloud)
    lines = refused(
        cloud,
        {"name": "nobody"},
        {"uuid": uuid_of("nameless")},
        {"uuid": uuid_of("twin"), "name": "here"},
        entry("orphan", parent_provider_uuid=uuid_of("nowhere")),
        entry("self", parent_provider_uuid=uuid_of("self")),
        entry("one", parent_provider_uuid=uuid_of("two")),
        entry("two", parent_provider_uuid=uuid_of("one")),
        entry("good"),
        entry("good"),
        entry("bad", traits=["CUSTOM_NOBODY"], inventories={"CUSTOM_NO": {"total": 1}}),
        entry("small", inventories={"VCPU": {"total": 1, "reserved": 2}}),
        {"uuid": uuid_of("here"), "inventories": {}},
        {"uuid": uuid_of("new"), "name": "new", "generation": 3},
    )
    assert [line.partition(": ")[0] for line in lines] == [
        f"providers[{index}]" for index in (0, 1, 2, 3, 4, 5, 6, 8, 9, 9, 10, 11, 12)
    ]
    for index, phrase in {
        0: "No resource provider with name nobody",
        1: "name is required",
        2: "Conflicting resource provider name: here already exists",
        3: "parent provider UUID does not exist",
        4: "parent provider UUID cannot be same as UUID",
        5: "creating loop",
        7: "providers[7]",
        10: "reserved value is greater than total",
        11: "in use",
        12: "generation",
    }.items():
        assert phrase in lines[index]
    assert listed(cloud) == before


@pytest.mark.parametrize(
    ("wrong", "phrase"),
    [
        ({}, "uuid"),
        ({"uuid": "x"}, "uuid"),
        ({"name": ""}, "name"),
        ({"name": "x", "usages": {}}, "usages"),
        ({"name": "x", "inventories": {"VCPU": {}}}, "total"),
        ({"name": "x", "inventories": {"VCPU": {"total": 0}}}, "minimum"),
        ({"name": "x", "traits": [""]}, "traits"),
        ({"name": "x", "aggregates": ["x"]}, "aggregates"),
    ],
    ids=str,
)
def test_each_entry_has_the_form_of_its_urls(cloud, wrong, phrase):
    (line,) = refused(cloud, entry("fine"), wrong)
    assert line.startswith("providers[1]: JSON does not validate: ")
    assert phrase in line
    many = [wrong] * 150
    assert len(refused(cloud, *many)) == 100


@pytest.mark.parametrize(
    "body",
    [
        {"providers": []},
        {"providers": [entry("a")] * 1001},
        {"providers": [entry("a")], "prune": True},
        {"providers": ["a"]},
        {},
    ],
    ids=lambda body: str(body)[:40],
)
def test_a_batch_has_its_bounds(cloud, body):
    assert "JSON does not validate" in cloud.post(PATH, body, status=400)["errors"][0]["detail"]


def test_a_generation_that_is_given_must_hold(cloud):
    applied(cloud, entry("host", traits=[TRAITS[0]]), entry("other"))
    stale = {"name": "host", "generation": 0, "traits": []}
    (line,) = refused(cloud, {"name": "other", "traits": [TRAITS[0]]}, stale, status=409)
    assert line.startswith("providers[1]: ")
    assert by_name(cloud)["other"]["traits"] == []
    (error,) = cloud.post(PATH, {"providers": [stale]}, status=409)["errors"]
    assert error["code"] == "placement.concurrent_update"
    assert error["conflict"] == {
        "kind": "provider_generation",
        "uuid": uuid_of("host"),
        "expected": 1,
        "given": 0,
    }
    applied(cloud, stale | {"generation": 1})
    assert by_name(cloud)["host"]["traits"] == []


def test_the_status_of_a_refusal_does_not_depend_on_the_order(cloud):
    applied(cloud, entry("host"), entry("other"))
    stale = {"name": "host", "generation": 7}
    unknown = {"name": "other", "traits": ["CUSTOM_NOBODY"]}
    for order in itertools.permutations((stale, unknown)):
        errors = cloud.post(PATH, {"providers": list(order)}, status=400)["errors"]
        assert [error["status"] for error in errors] == [400, 409]


def test_a_provider_and_what_was_above_it_change_places_in_any_order(cloud):
    for order in itertools.permutations(
        (
            {"uuid": uuid_of("a"), "name": "b", "parent_provider_uuid": uuid_of("b")},
            {"uuid": uuid_of("b"), "name": "a", "parent_provider_uuid": None},
        )
    ):
        applied(cloud, entry("a", parent_provider_uuid=None))
        applied(cloud, entry("b", parent_provider_uuid=uuid_of("a")), entry("other"))
        applied(cloud, entry("c", parent_provider_uuid=uuid_of("b")))
        answer = applied(cloud, *order)
        assert {one["result"] for one in answer} == {"changed"}
        shown = by_name(cloud)
        assert shown["b"]["uuid"] == uuid_of("a")
        assert shown["b"]["parent_provider_uuid"] == shown["a"]["uuid"] == uuid_of("b")
        roots = {shown[name]["root_provider_uuid"] for name in "abc"}
        assert roots == {uuid_of("b")}
        # Back to where they were.
        applied(
            cloud,
            {"uuid": uuid_of("b"), "name": "b", "parent_provider_uuid": uuid_of("a")},
            {"uuid": uuid_of("a"), "name": "a", "parent_provider_uuid": None},
        )


def test_a_dry_run_tells_and_does_nothing(cloud):
    applied(cloud, entry("host"))
    before = listed(cloud)
    new = [entry("new", traits=[TRAITS[0]]), entry("host", aggregates=[AGGREGATES[0]])]
    told = applied(cloud, *new, dry_run=True)
    assert [one["result"] for one in told] == ["created", "changed"]
    assert listed(cloud) == before
    assert applied(cloud, *new) == told


@pytest.mark.parametrize("seed", range(6))
def test_what_was_read_can_be_edited_and_applied_and_is_read_so(cloud, seed):
    """For random worlds and random edits: reading, editing and applying gives what was meant."""
    choice = random.Random(seed)
    cloud.random = choice
    cloud.fill(trees=3, consumers=0)
    for _ in range(4):
        wanted = listed(cloud)
        for one in wanted:
            edit(choice, one, wanted)
        answer = applied(cloud, *choice.sample(wanted, len(wanted)))
        results = {one["uuid"]: one for one in answer}
        for one in wanted:
            one["generation"] = results[one["uuid"]]["generation"]
        shown = listed(cloud)
        for one in (*wanted, *shown):
            del one["root_provider_uuid"]
            one["traits"].sort()
        assert shown == wanted
        again = applied(cloud, *shown)
        assert {one["result"] for one in again} == {"unchanged"}


def edit(choice, one, every):
    """Change something about a provider, or nothing."""
    match choice.randrange(6):
        case 0:
            one["traits"] = choice.sample(TRAITS, choice.randrange(3))
        case 1:
            one["aggregates"] = sorted(choice.sample(AGGREGATES, choice.randrange(3)))
        case 2:
            some = choice.sample(CLASSES, choice.randrange(3))
            one["inventories"] = {
                name: amounts(total=choice.randrange(1, 9)) for name in CLASSES if name in some
            }
        case 3:
            one["name"] = f"renamed-{next(NUMBERS)}"
        case 4 if not any(other["parent_provider_uuid"] == one["uuid"] for other in every):
            roots = [
                other["uuid"]
                for other in every
                if other["parent_provider_uuid"] is None and other is not one
            ]
            one["parent_provider_uuid"] = choice.choice([None, *roots])


def test_a_batch_is_seen_whole_or_not_at_all(cloud):
    names = [f"host-{number}" for number in range(20)]
    applied(cloud, *(entry(name, traits=[TRAITS[0]]) for name in names))

    def flip(step):
        applied(cloud, *(entry(name, traits=[TRAITS[step % 2]]) for name in names))

    with busy(flip):
        for _ in range(40):
            shown = {tuple(one["traits"]) for one in listed(cloud)}
            assert len(shown) == 1


@pytest.mark.slow
def test_ten_thousand_hosts_are_applied_a_thousand_in_a_call(tmp_path):
    aggregates = [uuid_of(f"rack {number}") for number in range(50)]
    hosts = [
        entry(
            f"host-{number}",
            inventories={
                "VCPU": {"total": 64, "allocation_ratio": 16.0},
                "MEMORY_MB": {"total": 262144, "reserved": 4096},
                "DISK_GB": {"total": 2000},
            },
            traits=[TRAITS[0], TRAITS[1]],
            aggregates=[aggregates[number % 50]],
        )
        for number in range(10_000)
    ]
    with cloud_on("sqlite", tmp_path) as cloud:
        for first in range(0, len(hosts), 1000):
            told = applied(cloud, *hosts[first : first + 1000])
            assert [answer["result"] for answer in told] == ["created"] * 1000
        assert len(cloud.ask(PATH, limit=10_000)["providers"]) == 10_000
