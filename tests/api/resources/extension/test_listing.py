# SPDX-License-Identifier: Apache-2.0
"""Providers in bulk (contract page 99, section 1), against what the single URLs say."""

import itertools

import pytest

from tests.api.resources.extension.clouds import AGGREGATES, TRAITS, cloud_on, uuid_of
from tests.databases import EACH_DATABASE

PATH = "/treeclaim/providers"
INCLUDES = ("inventories", "usages", "traits", "aggregates", "allocations")


@pytest.fixture(scope="module", params=EACH_DATABASE)
def cloud(request, tmp_path_factory):
    with cloud_on(request.param, tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud.fill()


def uuids(providers):
    return [provider["uuid"] for provider in providers]


@pytest.mark.slow
def test_included_parts_equal_single_requests(cloud):
    listed = cloud.ask(PATH, include=",".join(INCLUDES))
    assert listed["providers"] == [cloud.single(provider) for provider in cloud.providers]
    assert listed["links"] == []
    assert listed["cursor"]
    assert any(provider["allocations"] for provider in listed["providers"])


@pytest.mark.slow
def test_members_have_the_order_of_single_requests(cloud):
    listed = cloud.ask(PATH, include=",".join(INCLUDES))
    for shown, single in zip(listed["providers"], map(cloud.single, cloud.providers), strict=True):
        for part in ("inventories", "usages"):
            assert list(shown[part]) == list(single[part])


@pytest.mark.parametrize(
    "include",
    [combination for n in range(3) for combination in itertools.combinations(INCLUDES, n)],
    ids=str,
)
def test_only_requested_parts_are_included(cloud, include):
    parameters = {"include": ",".join(include)} if include else {}
    left_out = set(INCLUDES) - set(include)
    expected = [
        {name: value for name, value in cloud.single(provider).items() if name not in left_out}
        for provider in cloud.providers
    ]
    assert cloud.ask(PATH, **parameters)["providers"] == expected


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
    assert sorted(uuids(cloud.ask(PATH, **filters)["providers"])) == sorted(uuids(old))


def test_several_uuids_and_trees_are_accepted(cloud):
    some = [uuid_of("host-4"), uuid_of("nobody"), uuid_of("host-1")]
    assert uuids(cloud.ask(PATH, uuid=f"in:{','.join(some)}")["providers"]) == [some[2], some[0]]
    trees = cloud.ask(PATH, in_tree=f"in:{','.join(some)}")["providers"]
    assert {tree["root_provider_uuid"] for tree in trees} == {some[0], some[2]}
    everywhere = cloud.ask(PATH)["providers"]
    assert len(trees) == sum(one["root_provider_uuid"] in some for one in everywhere)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("filters", [{}, {"required": f"!{TRAITS[0]}"}], ids=str)
def test_pages_add_up_to_the_list(cloud, limit, filters):
    pages = cloud.pages(PATH, "providers", limit=limit, include="usages", **filters)
    whole = cloud.ask(PATH, include="usages", **filters)["providers"]
    assert list(itertools.chain(*pages)) == whole
    assert all(len(page) == limit for page in pages[:-1])
    assert 0 < len(pages[-1]) <= limit


def test_a_marker_of_another_list_is_refused(cloud):
    (link,) = cloud.ask("/treeclaim/totals", by="tree", limit=1)["links"]
    marker = link["href"].partition("marker=")[2]
    assert "marker" in cloud.refusal(PATH, marker=marker)


def test_a_renamed_class_is_shown_renamed(tmp_path):
    with cloud_on("sqlite", tmp_path) as cloud:
        client = cloud.client
        client.post("/resource_classes", json={"name": "CUSTOM_OLD"})
        provider = cloud.add_provider("host")
        generation = client.get(f"/resource_providers/{provider}").json()["generation"]
        body = {
            "inventories": {"CUSTOM_OLD": {"total": 1}},
            "resource_provider_generation": generation,
        }
        client.put(f"/resource_providers/{provider}/inventories", json=body)
        assert "CUSTOM_OLD" in cloud.ask(PATH, include="usages")["providers"][0]["usages"]
        old = {"openstack-api-version": "placement 1.6"}
        renamed = client.put(
            "/resource_classes/CUSTOM_OLD", json={"name": "CUSTOM_NEW"}, headers=old
        )
        assert renamed.is_success
        assert "CUSTOM_NEW" in cloud.ask(PATH, include="usages")["providers"][0]["usages"]


def test_links_have_the_filters(cloud):
    (link,) = cloud.ask(PATH, limit=2, required=[f"!{TRAITS[0]}", f"!{TRAITS[1]}"])["links"]
    assert link["href"].startswith(f"{PATH}?limit=2&required=!{TRAITS[0]}&required=!{TRAITS[1]}")
