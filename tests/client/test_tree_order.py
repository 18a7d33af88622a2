# SPDX-License-Identifier: Apache-2.0
"""Roots and depths of providers, against walking up from each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treeclaim.client.provider_batches import order_trees

NAMES = st.sampled_from("abcdefgh")
PARENTS = st.dictionaries(NAMES, st.none() | NAMES)


def list_ancestors(parents, name):
    """Return the ancestors of a provider; None if it is in or below a cycle."""
    ancestors = []
    while (name := parents.get(name)) is not None:
        if name in ancestors:
            return None
        ancestors.append(name)
    return [ancestor for ancestor in ancestors if ancestor in parents]


@given(PARENTS)
def test_places_have_root_and_depth_and_parents_come_first(parents):
    places = order_trees(parents)
    for name in parents:
        ancestors = list_ancestors(parents, name)
        if ancestors is None:
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
    assert order_trees(chain)["0"].depth == 199_999
    assert order_trees(chain | {"200000": "0"}) == {}
