# SPDX-License-Identifier: Apache-2.0
"""A provider that serves several slots of a candidate counts once (contract page 98, section 2)."""

import pytest

from tests.forest.building import answer_of, forest_of, provider_uuid, record
from treeclaim.model.extension.order import Order, Term, TermName
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.request import CandidateRequest, RequestGroup

HOST, POOL, OTHER_POOL = 1, 2, 3
RACK = "rack"


@pytest.fixture
def forest():
    """A host with a disk of its own, and two pools that are lent to it."""
    return forest_of(
        [
            record(
                HOST,
                inventories={"VCPU": (10, 1), "MEMORY_MB": (100, 7), "DISK_GB": (40, 39)},
                aggregates=(RACK,),
            ),
            record(
                POOL, inventories={"DISK_GB": (60, 3)}, traits=[SHARING_TRAIT], aggregates=(RACK,)
            ),
            record(
                OTHER_POOL,
                inventories={"DISK_GB": (90, 8)},
                traits=[SHARING_TRAIT],
                aggregates=(RACK,),
            ),
        ]
    )


def scores(forest, groups, term, arguments=(), **given):
    """Scores by the pools of each candidate, in the order of the groups that they serve."""
    request = CandidateRequest(groups, order=Order((Term(term, arguments),)), **given)
    answer = answer_of(forest, request)
    pools = {provider_uuid(POOL): "p", provider_uuid(OTHER_POOL): "q"}
    names = [
        tuple(
            "".join(sorted(pools.get(provider, "") for provider in candidate["mappings"][suffix]))
            for suffix in sorted(candidate["mappings"])
        )
        for candidate in answer["allocation_requests"]
    ]
    return dict(zip(names, answer["scores"], strict=True))


HOST_AND_DISKS = (
    RequestGroup("", {"VCPU": 2, "MEMORY_MB": 10}),
    RequestGroup("_A", {"DISK_GB": 4}),
    RequestGroup("_B", {"DISK_GB": 6}),
)


def test_pool_shared_by_two_groups_counts_once(forest):
    result = scores(forest, HOST_AND_DISKS, TermName.PACK, ("DISK_GB",))
    both = round((39 + 3 + 8 + 10) / (40 + 60 + 90), 12)
    assert result == {
        ("", "p", "p"): round((39 + 3 + 10) / (40 + 60), 12),
        ("", "q", "q"): round((39 + 8 + 10) / (40 + 90), 12),
        ("", "p", "q"): both,
        ("", "q", "p"): both,
    }


def test_spread_score_complements_pack_score(forest):
    result = scores(forest, HOST_AND_DISKS, TermName.SPREAD, ("DISK_GB",))
    assert result["", "p", "p"] == round(1 - 52 / 100, 12)


def test_a_tree_that_serves_two_slots_counts_once(forest):
    result = scores(forest, HOST_AND_DISKS, TermName.PACK, ("VCPU", "MEMORY_MB"))
    assert set(result.values()) == {round((3 / 10 + 17 / 100) / 2, 12)}


def test_pool_that_is_its_own_tree_counts_once(forest):
    groups = (RequestGroup("_A", {"DISK_GB": 4}), RequestGroup("_B", {"DISK_GB": 6}))
    result = scores(forest, groups, TermName.PACK)
    assert result["p", "p"] == round(13 / 60, 12)
    assert result["p", "q"] == round((3 + 8 + 10) / (60 + 90), 12)


def test_provider_serving_two_slots_is_scored_with_both_amounts(forest):
    result = scores(forest, HOST_AND_DISKS, TermName.PACK_PROVIDERS, ("DISK_GB",))
    assert result["", "p", "p"] == round(13 / 60, 12)
    assert result["", "p", "q"] == round((7 / 60 + 14 / 90) / 2, 12)


@pytest.mark.parametrize(
    ("pools", "pack", "pack_providers"),
    [
        (("p", "p"), (39 + 3 + 10) / (40 + 60), 13 / 60),
        (("p", "q"), (39 + 3 + 8 + 10) / (40 + 60 + 90), (7 / 60 + 14 / 90) / 2),
    ],
)
def test_each_provider_of_a_split_amount_counts_once(forest, pools, pack, pack_providers):
    groups = (
        RequestGroup("", {"VCPU": 2, "DISK_GB": 4}),
        RequestGroup("_B", {"DISK_GB": 6}),
    )
    divided = {"can_split": frozenset({"DISK_GB"})}
    result = scores(forest, groups, TermName.PACK, ("DISK_GB",), **divided)
    assert result[pools] == round(pack, 12)
    result = scores(forest, groups, TermName.PACK_PROVIDERS, ("DISK_GB",), **divided)
    assert result[pools] == round(pack_providers, 12)
