# SPDX-License-Identifier: Apache-2.0
"""A Forest that follows changes is equal to one that was loaded afresh."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forest.building import (
    BEGINNING,
    CLASSES,
    TRAITS,
    body_of,
    complete,
    forest_of,
    provider_uuid,
    record,
)
from tests.tiers import examples
from treeclaim.forest.bounds import thresholds
from treeclaim.forest.listing.selection import matching_providers
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Changes
from treeclaim.model.inventory import Inventory
from treeclaim.model.request import (
    CandidateRequest,
    ProviderConditions,
    ProviderQuery,
    RequestGroup,
    SubtreeList,
)

AGGREGATES = tuple(provider_uuid(1000 + number) for number in range(3))

inventories = st.dictionaries(
    st.sampled_from(CLASSES),
    st.tuples(st.builds(Inventory, total=st.integers(1, 8)), st.integers(0, 4)),
    max_size=3,
)
properties = st.fixed_dictionaries(
    {
        "inventories": inventories,
        "traits": st.sets(st.sampled_from(TRAITS), max_size=2),
        "aggregates": st.sets(st.sampled_from(AGGREGATES), max_size=2),
        "generation": st.integers(0, 5),
    }
)


class Picture:
    """The providers as the database would hold them, by id."""

    def __init__(self):
        self.records = {}
        self.touched = set()
        self.named = 0

    def set(self, number, parent, values):
        """Create or change a provider; its subtree follows it to its new tree."""
        if parent == number or parent not in self.records or self._is_below(parent, number):
            parent = None
        root = number if parent is None else self.records[parent].root_id
        self.named += 1
        answer = self.records.get(number)
        name = answer.name if answer else f"the {self.named}th"
        self.records[number] = record(number, parent, root, name=name, **values)
        self.touched.add(number)
        self._move_children(number, root)

    def _is_below(self, one, other):
        while one is not None:
            if one == other:
                return True
            one = self.records[one].parent_id
        return False

    def _move_children(self, number, root):
        for child in [one for one in self.records.values() if one.parent_id == number]:
            self.records[child.id] = replace(child, root_id=root)
            self.touched.add(child.id)
            self._move_children(child.id, root)

    def delete(self, number):
        if all(one.parent_id != number for one in self.records.values()):
            self.records.pop(number, None)
            self.touched.add(number)

    def rename(self, number, other):
        """Two providers swap their names."""
        if {number, other} <= self.records.keys():
            one, two = self.records[number], self.records[other]
            self.records[number] = replace(one, name=two.name)
            self.records[other] = replace(two, name=one.name)
            self.touched |= {number, other}

    def changes(self):
        touched, self.touched = self.touched, set()
        return Changes(
            cursor=BEGINNING,
            complete=False,
            records=[self.records[one] for one in touched if one in self.records],
            removed=[one for one in touched if one not in self.records],
            catalogue=None,
        )


numbers = st.integers(1, 12)
steps = st.one_of(
    st.tuples(st.just("set"), numbers, st.one_of(st.none(), numbers), properties),
    st.tuples(st.just("delete"), numbers),
    st.tuples(st.just("rename"), numbers, numbers),
)
REQUESTS = (
    CandidateRequest((RequestGroup("", {"VCPU": 1, "DISK_GB": 2}),)),
    CandidateRequest(
        (RequestGroup("_A", {"VCPU": 1}), RequestGroup("_B", {"CUSTOM_DEVICE": 1})),
        same_subtree=(SubtreeList(("_A", "_B")),),
    ),
)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.lists(steps, min_size=1, max_size=4), min_size=1, max_size=8), st.booleans())
def test_followed_forest_equals_a_fresh_load(batches, compact_soon):
    forest, picture = Forest(), Picture()
    forest.apply(complete([]))
    few = thresholds.FEWEST_DEAD_ROWS
    thresholds.FEWEST_DEAD_ROWS = 3 if compact_soon else few
    try:
        for batch in batches:
            for action, *arguments in batch:
                getattr(picture, action)(*arguments)
            forest.apply(picture.changes())
            assert_equal_to_fresh(forest, list(picture.records.values()))
    finally:
        thresholds.FEWEST_DEAD_ROWS = few


def test_a_new_provider_may_have_the_id_of_a_deleted_one():
    old, new = record(1), record(1, uuid=provider_uuid(2), name="another")
    forest = forest_of([old])
    forest.apply(
        Changes(cursor=BEGINNING, complete=False, records=[new], removed=[], catalogue=None)
    )
    assert_equal_to_fresh(forest, [new])
    assert forest.row_of(old.uuid) is None
    assert listed(forest, ProviderQuery(name=old.name)) == []


def assert_equal_to_fresh(forest, records):
    fresh = forest_of(records)
    assert forest.records() == fresh.records() == sorted(records, key=lambda one: one.id)
    for request in REQUESTS:
        assert body_of(forest, request) == body_of(fresh, request)
    assert listed(forest, ProviderQuery()) == listed(fresh, ProviderQuery())
    for one in records:
        assert listed(forest, ProviderQuery(name=one.name)) == [one.uuid]
        assert listed(forest, ProviderQuery(uuid=one.uuid)) == [one.uuid]
        of_tree = ProviderQuery(conditions=ProviderConditions(in_tree=(one.uuid,)))
        assert listed(forest, of_tree) == listed(fresh, of_tree) != []
    assert forest.associated_traits() == fresh.associated_traits()


def listed(forest, query):
    return [forest.uuid_of(row) for row in matching_providers(forest, query)]
