# SPDX-License-Identifier: Apache-2.0
"""Allocations in bulk (contract page 99, section 2), against what the single URLs say."""

import itertools

import pytest

from tests.api.resources.extension.clouds import AGGREGATES, CLASSES, TYPES, cloud_on, uuid_of
from tests.databases import EACH_DATABASE

PATH = "/treeclaim/allocations"


@pytest.fixture(scope="module", params=EACH_DATABASE)
def cloud(request, tmp_path_factory):
    with cloud_on(request.param, tmp_path_factory.mktemp("cloud")) as cloud:
        cloud.fill()
        claim_without_a_type(cloud)
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


@pytest.fixture(scope="module")
def holders(cloud):
    """The allocations of each consumer, by the single URLs."""
    return [cloud.holder(consumer) for consumer in sorted(cloud.consumers)]


@pytest.fixture(scope="module")
def providers(cloud):
    """All providers with everything, by uuid."""
    return {provider: cloud.single(provider) for provider in cloud.providers}


@pytest.mark.slow
def test_consumers_are_listed_with_allocations_by_uuid(cloud, holders):
    listed = cloud.ask(PATH)
    assert listed["consumers"] == holders
    assert listed["links"] == []
    assert listed["cursor"]
    assert {holder["consumer_type"] for holder in holders} >= {"INSTANCE", "unknown"}


@pytest.mark.parametrize("limit", [1, 3, 1000])
@pytest.mark.parametrize("filters", [{}, {"project_id": "red"}], ids=str)
def test_pages_add_up_to_the_list(cloud, limit, filters):
    pages = cloud.pages(PATH, "consumers", limit=limit, **filters)
    assert list(itertools.chain(*pages)) == cloud.ask(PATH, **filters)["consumers"]


@pytest.mark.parametrize(
    ("parameters", "passes"),
    [
        ({"project_id": "red"}, lambda one: one["project_id"] == "red"),
        ({"project_id": "RED"}, lambda one: False),
        ({"user_id": "bob"}, lambda one: one["user_id"] == "bob"),
        ({"consumer_type": TYPES[0]}, lambda one: one["consumer_type"] == TYPES[0]),
        ({"consumer_type": "unknown"}, lambda one: one["consumer_type"] == "unknown"),
        ({"consumer_type": "NOBODY"}, lambda one: False),
        (
            {"project_id": "green", "user_id": "ann"},
            lambda one: (one["project_id"], one["user_id"]) == ("green", "ann"),
        ),
    ],
    ids=["project", "spelling", "user", "type", "unknown", "no type", "both"],
)
def test_consumer_filters_select_consumers(cloud, holders, parameters, passes):
    assert cloud.ask(PATH, **parameters)["consumers"] == list(filter(passes, holders))


def test_consumers_are_selected_by_uuid(cloud, holders):
    some = [holders[4]["uuid"], holders[1]["uuid"], uuid_of("nobody")]
    assert cloud.ask(PATH, consumer=some[0].upper())["consumers"] == [holders[4]]
    assert cloud.ask(PATH, consumer=f"in:{','.join(some)}")["consumers"] == [
        holders[1],
        holders[4],
    ]


def test_one_record_must_meet_all_filters_of_records(cloud, holders, providers):
    """Provider, tree, aggregates and class, each alone and all pairs."""
    tree = uuid_of("host-0")
    conditions = {
        "provider": (cloud.providers[3], lambda uuid, _: uuid == cloud.providers[3]),
        "in_tree": (
            f"in:{tree},{cloud.providers[-1]}",
            lambda uuid, _: (
                providers[uuid]["root_provider_uuid"]
                in {tree, providers[cloud.providers[-1]]["root_provider_uuid"]}
            ),
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
            assert cloud.ask(PATH, **asked)["consumers"] == expected, asked
            found_some += 0 < len(expected) < len(holders)
    assert found_some > 10
