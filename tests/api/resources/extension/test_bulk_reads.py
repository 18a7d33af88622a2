# SPDX-License-Identifier: Apache-2.0
"""Providers, allocations and totals in bulk, against what the single URLs say (contract page 99, sections 1 to 3)."""

import itertools
import math

import pytest

from tests.api.resources.extension.clouds import (
    AGGREGATES,
    CLASSES,
    TRAITS,
    TYPES,
    cloud_on,
    uuid_of,
)
from tests.databases import EACH_DATABASE

PROVIDERS, ALLOCATIONS, TOTALS = (
    f"/treeclaim/{name}" for name in ("providers", "allocations", "totals")
)
INCLUDES = ("inventories", "usages", "traits", "aggregates", "allocations")


@pytest.fixture(scope="module", params=EACH_DATABASE)
def cloud(request, tmp_path_factory):
    with cloud_on(request.param, tmp_path_factory.mktemp("cloud")) as cloud:
        cloud.fill()
        claim_without_a_type(cloud)
        overfill(cloud)
        yield cloud


def claim_without_a_type(cloud):
    """Let a consumer hold something in the way of old clients."""
    consumer = uuid_of("without a type")
    headers = {"openstack-api-version": "placement 1.27"}
    for provider in cloud.providers:
        for name in cloud.single(provider)["inventories"]:
            body = {
                "allocations": {provider: {"resources": {name: 1}}},
                "project_id": "red",
                "user_id": "ann",
            }
            path = f"/allocations/{consumer}"
            if cloud.client.put(path, json=body, headers=headers).is_success:
                cloud.consumers.append(consumer)
                return


def overfill(cloud):
    """Take away inventory that is used already, so that something has less than nothing free."""
    for provider in cloud.providers:
        shown = cloud.single(provider)
        if shown["usages"].get("VCPU", 0) > 1:
            path = f"/resource_providers/{provider}/inventories/VCPU"
            body = {"total": 1, "resource_provider_generation": shown["generation"]}
            assert cloud.client.put(path, json=body).is_success
            return


@pytest.fixture(scope="module")
def providers(cloud):
    """All providers with everything, by uuid, by the single URLs."""
    return {provider: cloud.single(provider) for provider in cloud.providers}


@pytest.fixture(scope="module")
def holders(cloud):
    """The allocations of each consumer, by the single URLs."""
    return [cloud.holder(consumer) for consumer in sorted(cloud.consumers)]


# -- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "member", "filters"),
    [
        (PROVIDERS, "providers", {"include": "usages"}),
        (PROVIDERS, "providers", {"required": f"!{TRAITS[0]}"}),
        (ALLOCATIONS, "consumers", {}),
        (ALLOCATIONS, "consumers", {"project_id": "red"}),
        *((TOTALS, "parts", {"by": by}) for by in ("tree", "aggregate", "trait")),
    ],
    ids=str,
)
@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
def test_pages_add_up_to_the_list(cloud, path, member, filters, limit):
    pages = cloud.pages(path, member, limit=limit, **filters)
    assert list(itertools.chain(*pages)) == cloud.ask(path, **filters)[member]
    assert all(len(page) == limit for page in pages[:-1])
    assert 0 < len(pages[-1]) <= limit


def test_a_marker_of_another_list_is_refused(cloud):
    (link,) = cloud.ask(TOTALS, by="tree", limit=1)["links"]
    marker = link["href"].partition("marker=")[2]
    assert "marker" in cloud.refusal(PROVIDERS, marker=marker)


def test_links_have_the_filters(cloud):
    (link,) = cloud.ask(PROVIDERS, limit=2, required=[f"!{TRAITS[0]}", f"!{TRAITS[1]}"])["links"]
    assert link["href"].startswith(
        f"{PROVIDERS}?limit=2&required=!{TRAITS[0]}&required=!{TRAITS[1]}"
    )


# -- providers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "include",
    [*(some for n in range(3) for some in itertools.combinations(INCLUDES, n)), INCLUDES],
    ids=str,
)
def test_requested_parts_equal_single_requests(cloud, providers, include):
    answer = cloud.ask(PROVIDERS, **({"include": ",".join(include)} if include else {}))
    left_out = set(INCLUDES) - set(include)
    singles = [
        {name: value for name, value in provider.items() if name not in left_out}
        for provider in providers.values()
    ]
    assert answer["providers"] == singles
    assert answer["links"] == []
    assert answer["cursor"]
    for shown, single in zip(answer["providers"], singles, strict=True):
        for part in {"inventories", "usages"} & set(include):
            assert list(shown[part]) == list(single[part])


@pytest.mark.parametrize(
    "filters",
    [
        {"name": "host-1"},
        {"name": "nobody"},
        {"uuid": uuid_of("host-2")},
        {"uuid": uuid_of("nobody")},
        {"in_tree": uuid_of("host-3")},
        {"in_tree": uuid_of("nobody")},
        {"member_of": AGGREGATES[0]},
        {"member_of": f"in:{AGGREGATES[0]},{AGGREGATES[1]}"},
        {"member_of": [AGGREGATES[0], f"!{AGGREGATES[1]}"]},
        {"member_of": uuid_of("nobody")},
        {"required": TRAITS[0]},
        {"required": f"{TRAITS[0]},!{TRAITS[1]}"},
        {"required": [f"in:{TRAITS[0]},{TRAITS[1]}", f"!{TRAITS[2]}"]},
        {"resources": "VCPU:4"},
        {"resources": "VCPU:40,MEMORY_MB:10"},
        {"resources": "DISK_GB:1", "required": f"!{TRAITS[0]}", "member_of": AGGREGATES[2]},
    ],
    ids=str,
)
def test_filters_match_the_placement_list(cloud, filters):
    pairs = [
        (name, one)
        for name, value in filters.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    old = cloud.client.get("/resource_providers", params=pairs).json()["resource_providers"]
    listed = cloud.ask(PROVIDERS, **filters)["providers"]
    assert {one["uuid"] for one in listed} == {one["uuid"] for one in old}
    assert len(listed) == len(old)


def test_several_uuids_and_trees_are_accepted(cloud, providers):
    some = [uuid_of("host-4"), uuid_of("nobody"), uuid_of("host-1")]
    listed = cloud.ask(PROVIDERS, uuid=f"in:{','.join(some)}")["providers"]
    assert [one["uuid"] for one in listed] == [some[2], some[0]]
    trees = cloud.ask(PROVIDERS, in_tree=f"in:{','.join(some)}")["providers"]
    assert [one["uuid"] for one in trees] == [
        uuid for uuid, one in providers.items() if one["root_provider_uuid"] in some
    ]


# -- allocations -----------------------------------------------------------------------------------


def test_consumers_are_listed_with_allocations_by_uuid(cloud, holders):
    listed = cloud.ask(ALLOCATIONS)
    assert listed["consumers"] == holders
    assert listed["links"] == []
    assert listed["cursor"]
    assert {holder["consumer_type"] for holder in holders} >= {"INSTANCE", "unknown"}
    some = [holders[4]["uuid"], holders[1]["uuid"], uuid_of("nobody")]
    assert cloud.ask(ALLOCATIONS, consumer=some[0].upper())["consumers"] == [holders[4]]
    several = cloud.ask(ALLOCATIONS, consumer=f"in:{','.join(some)}")["consumers"]
    assert several == [holders[1], holders[4]]


@pytest.mark.parametrize(
    "members",
    [
        {"project_id": "red"},
        {"project_id": "RED"},
        {"user_id": "bob"},
        {"consumer_type": TYPES[0]},
        {"consumer_type": "unknown"},
        {"consumer_type": "NOBODY"},
        {"project_id": "green", "user_id": "ann"},
    ],
    ids=str,
)
def test_consumer_filters_select_consumers(cloud, holders, members):
    expected = [holder for holder in holders if members.items() <= holder.items()]
    assert cloud.ask(ALLOCATIONS, **members)["consumers"] == expected


def test_one_record_must_meet_all_filters_of_records(cloud, holders, providers):
    """Provider, tree, aggregates and class, each alone and all pairs."""
    some, last = uuid_of("host-0"), cloud.providers[-1]
    roots = {some, providers[last]["root_provider_uuid"]}
    conditions = {
        "provider": (cloud.providers[3], lambda uuid, _: uuid == cloud.providers[3]),
        "in_tree": (
            f"in:{some},{last}",
            lambda uuid, _: providers[uuid]["root_provider_uuid"] in roots,
        ),
        "member_of": (
            AGGREGATES[0],
            lambda uuid, _: AGGREGATES[0] in providers[uuid]["aggregates"],
        ),
        "member_of_": (
            f"!{AGGREGATES[1]}",
            lambda uuid, _: AGGREGATES[1] not in providers[uuid]["aggregates"],
        ),
        "resource_class": (f"in:{CLASSES[0]},{CLASSES[2]}", lambda _, name: name != CLASSES[1]),
    }
    found_some = 0
    for n in (1, 2, 3):
        for names in itertools.combinations(conditions, n):
            expected = [
                holder
                for holder in holders
                if any(
                    all(conditions[name][1](uuid, resource_class) for name in names)
                    for uuid, share in holder["allocations"].items()
                    for resource_class in share["resources"]
                )
            ]
            asked = {name: conditions[name][0] for name in names}
            assert cloud.ask(ALLOCATIONS, **asked)["consumers"] == expected, asked
            found_some += 0 < len(expected) < len(holders)
    assert found_some > 10


# -- totals ----------------------------------------------------------------------------------------


def summed(some, classes=CLASSES):
    """Section 3, by the book."""
    totals = {}
    for name in classes:
        stock = [
            (one["inventories"][name], one["usages"][name])
            for one in some
            if name in one["inventories"]
        ]
        if not stock:
            continue
        capacities = [
            max(0, math.trunc((one["total"] - one["reserved"]) * one["allocation_ratio"]))
            for one, _ in stock
        ]
        free = [
            max(0, capacity - used) for capacity, (_, used) in zip(capacities, stock, strict=True)
        ]
        totals[name] = {
            "total": sum(one["total"] for one, _ in stock),
            "reserved": sum(one["reserved"] for one, _ in stock),
            "capacity": sum(capacities),
            "used": sum(used for _, used in stock),
            "free": sum(free),
            "largest_free": max(free),
            "providers": len(stock),
            "held": 0,
        }
    return totals


FILTERS = {
    "in_tree": (uuid_of("host-0"), lambda one: one["root_provider_uuid"] == uuid_of("host-0")),
    "member_of": (AGGREGATES[1], lambda one: AGGREGATES[1] in one["aggregates"]),
    "required": (f"!{TRAITS[0]}", lambda one: TRAITS[0] not in one["traits"]),
}


@pytest.mark.parametrize(
    "names",
    [names for n in range(4) for names in itertools.combinations(FILTERS, n)],
    ids=str,
)
@pytest.mark.parametrize("classes", [None, "VCPU", "in:MEMORY_MB,DISK_GB"], ids=str)
def test_totals_sum_matching_providers(cloud, providers, names, classes):
    parameters = {name: FILTERS[name][0] for name in names}
    wanted = CLASSES
    if classes is not None:
        parameters["resource_class"] = classes
        wanted = classes.removeprefix("in:").split(",")
    matching = [one for one in providers.values() if all(FILTERS[name][1](one) for name in names)]
    answer = cloud.ask(TOTALS, **parameters)
    assert answer["totals"] == summed(matching, wanted)
    assert list(answer["totals"]) == [name for name in CLASSES if name in answer["totals"]]
    assert answer["links"] == []
    assert answer["cursor"]
    assert "parts" not in answer


def parts_of(providers, by):
    """Yield uuid, name and members of each part that there may be, in the order of the contract."""
    if by == "tree":
        for root in (one for one in providers.values() if one["parent_provider_uuid"] is None):
            yield (
                root["uuid"],
                root["name"],
                lambda one, r=root: one["root_provider_uuid"] == r["uuid"],
            )
    elif by == "aggregate":
        for uuid in sorted(AGGREGATES):
            yield (
                uuid,
                None,
                lambda one, uuid=uuid: (
                    uuid in one["aggregates"]
                    or uuid in providers[one["root_provider_uuid"]]["aggregates"]
                ),
            )
    else:
        for name in sorted(TRAITS):
            yield None, name, lambda one, name=name: name in one["traits"]


@pytest.mark.parametrize("by", ["tree", "aggregate", "trait"])
@pytest.mark.parametrize("filters", [(), ("required",)], ids=str)
def test_parts_sum_their_matching_members(cloud, providers, by, filters):
    matching = [one for one in providers.values() if all(FILTERS[n][1](one) for n in filters)]
    parts = (
        (uuid, name, list(filter(belongs, matching)))
        for uuid, name, belongs in parts_of(providers, by)
    )
    expected = [(uuid, name, summed(members)) for uuid, name, members in parts if members]
    answer = cloud.ask(TOTALS, by=by, **{name: FILTERS[name][0] for name in filters})
    assert [(part["uuid"], part["name"], part["totals"]) for part in answer["parts"]] == expected
