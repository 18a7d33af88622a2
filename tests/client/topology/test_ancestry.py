# SPDX-License-Identifier: Apache-2.0
"""Circles, depths and descendants, against walking up from each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treeclaim.client.topology.tree import find_cycles, find_descendants, order_trees

NAMES = st.sampled_from("abcdefgh")
PARENTS = st.dictionaries(NAMES, st.none() | NAMES)


def above(parents, name):
    """All above a provider; it is among them itself if it is in a circle."""
    ancestors = []
    while (name := parents.get(name)) is not None and name not in ancestors:
        ancestors.append(name)
    return ancestors


@given(PARENTS)
def test_places_have_root_and_depth_and_parents_come_first(parents):
    places = order_trees(parents)
    in_circle = find_cycles(parents)
    for name in parents:
        ancestors = [ancestor for ancestor in above(parents, name) if ancestor in parents]
        if in_circle & {name, *ancestors}:
            assert name not in places
        else:
            assert places[name] == ([name, *ancestors][-1], len(ancestors))
    order = list(places)
    assert all(
        order.index(parents[name]) < order.index(name) for name in order if parents[name] in places
    )


@pytest.mark.slow
def test_chain_of_200_000_is_handled():
    chain = {str(number): str(number + 1) for number in range(200_000)}
    assert find_cycles(chain) == set()
    assert order_trees(chain)["0"].depth == 199_999
    assert len(find_descendants(chain, {"200000"})) == 200_000
    assert find_cycles(chain | {"200000": "0"}) == {*chain, "200000"}
