# SPDX-License-Identifier: Apache-2.0
"""Totals (contract page 99, section 3), against sums over what the single URLs say."""

import itertools
import math

import pytest

from tests.api.resources.extension.clouds import (
    AGGREGATES,
    CLASSES,
    TRAITS,
    cloud_on,
    uuid_of,
)

PATH = "/treeclaim/totals"
GREATEST = 2**53 - 1


@pytest.fixture(scope="module", params=[0, 1, 2])
def cloud(request, tmp_path_factory):
    with cloud_on("sqlite", tmp_path_factory.mktemp("cloud")) as cloud:
        cloud.random.seed(request.param)
        cloud.fill(trees=5, consumers=30)
        overfill(cloud)
        yield cloud


@pytest.fixture(scope="module")
def providers(cloud):
    return [cloud.single(provider) for provider in cloud.providers]


def overfill(cloud):
    """Take away inventory that is used already, so that something has less than nothing free."""
    for provider in cloud.providers:
        shown = cloud.single(provider)
        used = shown["usages"].get("VCPU", 0)
        if used > 1:
            path = f"/resource_providers/{provider}/inventories/VCPU"
            body = {"total": 1, "resource_provider_generation": shown["generation"]}
            assert cloud.client.put(path, json=body).is_success
            return


def summed(providers, classes=CLASSES):
    """Section 3, by the book."""
    totals = {}
    for name in CLASSES:
        having = [
            provider
            for provider in providers
            if name in provider["inventories"] and name in classes
        ]
        if not having:
            continue
        stock = [(provider["inventories"][name], provider["usages"][name]) for provider in having]
        capacities = [
            max(
                0,
                math.trunc(
                    (inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"]
                ),
            )
            for inventory, _ in stock
        ]
        free = [
            max(0, capacity - used) for capacity, (_, used) in zip(capacities, stock, strict=True)
        ]
        totals[name] = {
            "total": sum(inventory["total"] for inventory, _ in stock),
            "reserved": sum(inventory["reserved"] for inventory, _ in stock),
            "capacity": sum(capacities),
            "used": sum(used for _, used in stock),
            "free": sum(free),
            "largest_free": max(free),
            "providers": len(having),
            "held": 0,
        }
    return totals


FILTERS = {
    "in_tree": (
        uuid_of("host-0"),
        lambda provider: provider["root_provider_uuid"] == uuid_of("host-0"),
    ),
    "member_of": (AGGREGATES[1], lambda provider: AGGREGATES[1] in provider["aggregates"]),
    "required": (f"!{TRAITS[0]}", lambda provider: TRAITS[0] not in provider["traits"]),
}


@pytest.mark.parametrize(
    "names",
    [names for n in range(4) for names in itertools.combinations(FILTERS, n)],
    ids=str,
)
@pytest.mark.parametrize("classes", [None, "VCPU", "in:MEMORY_MB,DISK_GB"], ids=str)
def test_totals_sum_matching_providers(cloud, providers, names, classes):
    parameters = {name: FILTERS[name][0] for name in names}
    expected_classes = CLASSES
    if classes is not None:
        parameters["resource_class"] = classes
        expected_classes = classes.removeprefix("in:").split(",")
    matching = [
        provider for provider in providers if all(FILTERS[name][1](provider) for name in names)
    ]
    answer = cloud.ask(PATH, **parameters)
    assert answer["totals"] == summed(matching, expected_classes)
    assert list(answer["totals"]) == [name for name in CLASSES if name in answer["totals"]]
    assert answer["links"] == []
    assert answer["cursor"]
    assert "parts" not in answer


def parts_of(cloud, by, **parameters):
    return [
        (part["uuid"], part["name"], part["totals"])
        for part in cloud.ask(PATH, by=by, **parameters)["parts"]
    ]


def test_parts_by_tree_are_ordered_by_creation(cloud, providers):
    roots = [provider for provider in providers if provider["parent_provider_uuid"] is None]
    assert parts_of(cloud, "tree") == [
        (
            root["uuid"],
            root["name"],
            summed(
                [
                    provider
                    for provider in providers
                    if provider["root_provider_uuid"] == root["uuid"]
                ]
            ),
        )
        for root in roots
    ]


def test_parts_by_aggregate_count_members_and_trees_of_member_roots(cloud, providers):
    aggregates_of = {provider["uuid"]: set(provider["aggregates"]) for provider in providers}
    expected = []
    for uuid in sorted(AGGREGATES):
        members = [
            provider
            for provider in providers
            if uuid
            in aggregates_of[provider["uuid"]] | aggregates_of[provider["root_provider_uuid"]]
        ]
        if members:
            expected.append((uuid, None, summed(members)))
    assert parts_of(cloud, "aggregate") == expected


def test_parts_by_trait_count_providers_with_the_trait(cloud, providers):
    expected = [
        (None, name, summed([provider for provider in providers if name in provider["traits"]]))
        for name in sorted(TRAITS)
        if any(name in provider["traits"] for provider in providers)
    ]
    assert parts_of(cloud, "trait") == expected


def test_parts_cover_matching_providers_only(cloud, providers):
    matching = [provider for provider in providers if TRAITS[0] not in provider["traits"]]
    roots = dict.fromkeys(provider["root_provider_uuid"] for provider in matching)
    parts = parts_of(cloud, "tree", required=f"!{TRAITS[0]}", resource_class="VCPU")
    assert {uuid: totals for uuid, _, totals in parts} == {
        root: summed(
            [provider for provider in matching if provider["root_provider_uuid"] == root], ["VCPU"]
        )
        for root in roots
    }


@pytest.mark.parametrize("by", ["tree", "aggregate", "trait"])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_add_up_to_the_parts(cloud, by, limit):
    pages = cloud.pages(PATH, "parts", by=by, limit=limit)
    assert list(itertools.chain(*pages)) == cloud.ask(PATH, by=by)["parts"]
    assert all(len(page) == limit for page in pages[:-1])


def test_totals_stay_within_exactly_representable_integers(tmp_path):
    with cloud_on("sqlite", tmp_path) as cloud:
        for name in ("one", "two"):
            provider = cloud.add_provider(name)
            shown = cloud.client.get(f"/resource_providers/{provider}").json()
            huge = {"total": 2147483647, "allocation_ratio": 3e38}
            body = {
                "inventories": {"VCPU": huge, "DISK_GB": {"total": 2147483647}},
                "resource_provider_generation": shown["generation"],
            }
            path = f"/resource_providers/{provider}/inventories"
            assert cloud.client.put(path, json=body).is_success
        for totals in (
            cloud.ask(PATH)["totals"],
            cloud.ask(PATH, by="tree")["parts"][0]["totals"],
        ):
            assert totals["VCPU"]["capacity"] == GREATEST
            assert totals["VCPU"]["free"] == totals["VCPU"]["largest_free"] == GREATEST
        assert cloud.ask(PATH)["totals"]["DISK_GB"]["free"] == 2 * 2147483647
