# SPDX-License-Identifier: Apache-2.0
"""Lists of providers, which clients ask for by a name, a uuid or a tree all day."""

from hypothesis import given
from hypothesis import strategies as st

from tests.forest.building import CATALOGUE, forest_of, news, provider_uuid, record
from treeclaim.forest.listing.selection import ProviderSelection, matching_providers, select_rows
from treeclaim.model.request import ProviderConditions, ProviderQuery

MOST = 12
"""Providers of a world."""

NUMBERS = st.integers(1, MOST + 1)
"""Of providers, one of which there never is."""


@st.composite
def forests(draw):
    """Providers by number in a Forest, some of which have come, and gone, after it was loaded."""
    records = {}
    for number in range(1, MOST + 1):
        parent = draw(st.sampled_from([None, *records]))
        root = number if parent is None else records[parent].root_id
        traits = ["CUSTOM_FAST"] if draw(st.booleans()) else []
        records[number] = record(number, parent, root, {"VCPU": 8}, traits)
    loaded = draw(st.integers(0, MOST))
    forest = forest_of(list(records.values())[:loaded])
    gone = [
        number
        for number, one in records.items()
        if all(other.parent_id != number for other in records.values()) and draw(st.booleans())
    ]
    forest.apply(change(list(records.values())[loaded:], []))
    forest.apply(change([], gone))
    return forest, {number: records[number] for number in records.keys() - set(gone)}


def change(records, removed):
    return news(*records, removed=removed, catalogue=CATALOGUE)


@st.composite
def questions(draw):
    """Filters of each kind, together or not."""
    trees = draw(st.lists(NUMBERS, max_size=2))
    return ProviderQuery(
        name=draw(st.one_of(st.none(), NUMBERS.map("provider {}".format))),
        uuid=draw(st.one_of(st.none(), NUMBERS.map(provider_uuid))),
        conditions=ProviderConditions(
            in_tree=tuple(map(provider_uuid, trees)),
            required=draw(st.sampled_from([(), (frozenset({"CUSTOM_FAST"}),)])),
        ),
        resources=draw(st.sampled_from([{}, {"VCPU": 8}, {"VCPU": 9}])),
    )


def expected(there, query):
    """The numbers of the providers that match, by the words of the contract alone."""
    conditions = query.conditions
    roots = {one.root_id for one in there.values() if one.uuid in conditions.in_tree}
    return {
        number
        for number, one in there.items()
        if query.name in {None, one.name}
        and query.uuid in {None, one.uuid}
        and (not conditions.in_tree or one.root_id in roots)
        and (not conditions.required or one.links["traits"])
        and query.resources.get("VCPU", 0) <= 8
    }


@given(forests(), questions())
def test_providers_matching_all_filters_are_listed(world, query):
    forest, there = world
    rows = matching_providers(forest, query)
    assert sorted(forest.id.values[rows].tolist()) == sorted(expected(there, query))
    asked = ProviderSelection(
        name=query.name,
        uuids=None if query.uuid is None else frozenset({query.uuid}),
        conditions=query.conditions,
        resources=query.resources,
    )
    assert select_rows(forest, asked).tolist() == sorted(rows)
