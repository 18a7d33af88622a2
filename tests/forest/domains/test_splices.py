# SPDX-License-Identifier: Apache-2.0
"""Cached pairs that follow a change of one tree equal new ones."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forest.building import (
    body_of,
    complete,
    forest_of,
    having,
    news,
    provider_uuid,
    record,
    wide_trees,
)
from tests.properties.forest_adapter import every_path, lowered
from tests.tiers import examples
from treeclaim.forest.table.forest import Forest
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.request import (
    CandidateRequest,
    ProviderConditions,
    RequestGroup,
    SubtreeList,
)

RACK = provider_uuid(1000)
ANY = ProviderConditions()
CONDITIONS = (
    ProviderConditions(),
    ProviderConditions(required=(frozenset({"CUSTOM_FAST"}),)),
    ProviderConditions(forbidden=frozenset({"CUSTOM_FAST"})),
    ProviderConditions(member_of=(frozenset({RACK}),)),
    ProviderConditions(forbidden_aggregates=frozenset({RACK})),
    ProviderConditions(in_tree=(provider_uuid(3),)),
    ProviderConditions(not_in_tree=(provider_uuid(2),)),
    ProviderConditions(in_subtree=(provider_uuid(4),)),
)
FIRST = (
    record(2, None, 2, {"VCPU": 8, "DISK_GB": 8}, (), (RACK,)),
    record(3, None, 3, {"VCPU": 8}, ("CUSTOM_FAST",)),
    record(4, 3, 3, {"DISK_GB": 8, "CUSTOM_DEVICE": 1}),
    record(6, None, 6, {"VCPU": 8}),
)
IDS = st.integers(1, 9)


class Cloud:
    """Records that change one by one, and a Forest that follows."""

    def __init__(self):
        self.records = {one.id: one for one in FIRST}
        self.forest = Forest()
        self.forest.apply(complete(FIRST))

    def tell(self, *records, removed=()):
        self.records |= {one.id: one for one in records}
        for one in removed:
            del self.records[one]
        self.forest.apply(news(*records, removed=removed))

    def create(self, number, other):
        """A provider, below another one if that is there; `other` may be after it in order."""
        if number not in self.records:
            parent = self.records.get(other)
            root = number if parent is None else parent.root_id
            stock = {"VCPU": 4, "CUSTOM_DEVICE": 1} if number % 2 else {"DISK_GB": 4}
            below = None if parent is None else parent.id
            self.tell(record(number, below, root, stock))

    def delete(self, number, _other):
        """A provider without children is gone."""
        if number in self.records and all(
            one.parent_id != number for one in self.records.values()
        ):
            self.tell(removed=[number])

    def change(self, number, other):
        """A trait, an aggregate or an inventory comes or goes."""
        answer = self.records.get(number)
        if answer is None:
            return
        fast, slow = having(answer, traits=(3,)), having(answer, traits=())
        inside, outside = having(answer, aggregates=(RACK,)), having(answer, aggregates=())
        bare, stocked = (
            replace(answer, inventories=()),
            replace(answer, inventories=record(1, inventories={"VCPU": 2}).inventories),
        )
        self.tell((fast, slow, inside, outside, bare, stocked)[other % 6])

    def share(self, number, _other):
        """A provider lends what it has, or does no more."""
        answer = self.records.get(number)
        if answer is not None:
            shares = () if answer.trait_ids == (1,) else (1,)
            self.tell(having(answer, traits=shares, aggregates=(RACK,)))

    def move(self, number, other):
        """A provider goes with its subtree below another one, or becomes a root if there is none."""
        if number not in self.records:
            return
        subtree = [number]
        for parent_id in subtree:
            subtree += [one.id for one in self.records.values() if one.parent_id == parent_id]
        parent = None if other in subtree else self.records.get(other)
        root = number if parent is None else parent.root_id
        moved = [replace(self.records[one], root_id=root) for one in subtree]
        moved[0] = replace(moved[0], parent_id=None if parent is None else parent.id)
        self.tell(*moved)

    def use(self, number, other):
        """Some of what a provider has is taken, or given back."""
        answer = self.records.get(number)
        if answer is not None:
            stock = tuple(replace(it, used=other % 5) for it in answer.inventories)
            self.tell(replace(answer, inventories=stock))

    def ask(self, _number, _other):
        """Questions are asked, so that something is known of the shape as it is."""
        for request in REQUESTS:
            body_of(self.forest, request)


DEVICE = RequestGroup("_B", {"CUSTOM_DEVICE": 1})
REQUESTS = tuple(
    CandidateRequest(groups, root, lists, limit=limit)
    for limit in (None, 1, 3)
    for groups, root, lists in (
        *(
            ((RequestGroup("_A", {"VCPU": 1}, conditions), DEVICE), ANY, ())
            for conditions in CONDITIONS
        ),
        ((RequestGroup("", {"VCPU": 1, "CUSTOM_DEVICE": 1}),), ANY, ()),
        ((RequestGroup("", {"VCPU": 1, "CUSTOM_DEVICE": 1}, CONDITIONS[1]),), ANY, ()),
        ((RequestGroup("_A", {"DISK_GB": 3}), DEVICE), ANY, ()),
        ((RequestGroup("_A", {"DISK_GB": 1}), DEVICE), ANY, (SubtreeList(("_A", "_B")),)),
        ((RequestGroup("_A", {"VCPU": 1}), DEVICE), CONDITIONS[1], ()),
    )
)

STORIES = st.lists(
    st.tuples(
        st.sampled_from(
            (
                *("create", "create", "delete", "change", "change", "use", "move"),
                *("move", "share", "ask", "ask"),
            )
        ),
        IDS,
        IDS,
    ),
    max_size=25,
)


@pytest.mark.slow
@every_path
def test_responses_follow_single_tree_changes(sizes):
    @settings(max_examples=examples(40), deadline=None)
    @given(STORIES)
    def check(story):
        cloud = Cloud()
        for name, number, other in story:
            getattr(cloud, name)(number, other)
            fresh = forest_of(cloud.records.values())
            for request in REQUESTS:
                assert body_of(cloud.forest, request) == body_of(fresh, request), request

    with lowered(sizes):
        check()


def test_many_tree_changes_cause_a_full_reevaluation():
    forest = forest_of(wide_trees(5, 2))
    request = CandidateRequest((RequestGroup("_A", {"CUSTOM_DEVICE": 1}),))
    body_of(forest, request)
    for number in range(1000, 1040):
        new = record(number, 4, 4, {"CUSTOM_DEVICE": 1})
        forest.apply(news(new))
    assert body_of(forest, request).count(b'"allocations"') == 50


def test_provider_that_starts_sharing_affects_all_trees():
    forest = forest_of(
        [
            record(1, None, 1, {"VCPU": 8}, (), (RACK,)),
            record(2, None, 2, {"DISK_GB": 8}, (), (RACK,)),
        ]
    )
    request = CandidateRequest((RequestGroup("", {"VCPU": 1, "DISK_GB": 1}),))
    assert b'"allocations"' not in body_of(forest, request)
    pool = record(2, None, 2, {"DISK_GB": 8}, (SHARING_TRAIT,), (RACK,))
    forest.apply(news(pool))
    assert body_of(forest, request).count(b'"allocations"') == 1
