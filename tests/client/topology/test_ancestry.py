# SPDX-License-Identifier: Apache-2.0
"""Circles, depths and descendants, against walking up from each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treeclaim.client.topology.tree import (
    count_ancestors,
    find_cycles,
    find_descendants,
    find_roots,
)

NAMES = st.sampled_from("abcdefgh")
PARENTS = st.dictionaries(NAMES, st.none() | NAMES)


def above(parents, name):
    """All above a provider; it is among them itself if it is in a circle."""
    found = []
    while (name := parents.get(name)) is not None and name not in found:
        found.append(name)
    return found


@given(PARENTS)
def test_own_ancestors_form_the_cycles(parents):
    assert find_cycles(parents) == {name for name in parents if name in above(parents, name)}


@given(PARENTS)
def test_depths_count_the_ancestors(parents):
    result = count_ancestors(parents)
    in_circle = find_cycles(parents)
    for name in parents:
        ancestors = above(parents, name)
        is_bad = in_circle & {name, *ancestors}
        assert result[name] == (0 if is_bad else len(ancestors))


@given(PARENTS)
def test_roots_are_the_topmost_ancestors(parents):
    roots = find_roots(parents)
    for name in parents:
        ancestors = [name, *above(parents, name)]
        if not find_cycles(parents) & set(ancestors):
            assert roots[name] == ancestors[-1]


@given(PARENTS, st.frozensets(NAMES))
def test_descendants_are_found_for_given_ancestors(parents, those):
    expected = {name for name in parents if those & set(above(parents, name))}
    assert find_descendants(parents, those) == expected


@pytest.mark.slow
def test_chain_of_200_000_is_handled():
    chain = {str(number): str(number + 1) for number in range(200_000)}
    assert find_cycles(chain) == set()
    assert count_ancestors(chain)["0"] == 200_000
    assert len(find_descendants(chain, {"200000"})) == 200_000
    assert find_cycles(chain | {"200000": "0"}) == {*chain, "200000"}
