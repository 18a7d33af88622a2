# SPDX-License-Identifier: Apache-2.0
"""The one cache of the Forest stays within its bytes, keys included, and forgets what is used least."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treeclaim.forest.bounds import cache
from treeclaim.forest.bounds.cache import ByteCache, size_of

MOST = 20_000


@dataclass(frozen=True)
class Value:
    """Takes so many bytes."""

    nbytes: int


KEYS = st.one_of(st.integers(0, 9), st.text(max_size=300), st.tuples(st.text(max_size=300)))
STEPS = st.tuples(st.sampled_from(["keep", "take", "find"]), KEYS, st.integers(0, 6_000))


@given(st.lists(STEPS, max_size=60))
def test_values_and_keys_take_no_more_than_is_allowed_and_the_latest_stay(steps):
    kept, latest = ByteCache(MOST), []
    for name, key, size in steps:
        if name == "keep":
            kept.keep(key, Value(size))
        elif name == "take":
            kept.take(key)
            latest = [one for one in latest if one != key]
        found = kept.find(key)
        assert name != "take" or found is None
        if found is not None:
            latest = [key, *(one for one in latest if one != key)]
        sizes = {one: kept._values[one][0].nbytes for one in latest if one in kept._values}
        costs = {one: size + size_of(one) + cache._OVERHEAD for one, size in sizes.items()}
        assert sum(costs.values()) == kept._bytes <= MOST
        # What is there is what was used last.
        assert latest[: len(costs)] == list(costs)
        latest = list(costs)


@dataclass(frozen=True)
class Arrays:
    """A value with arrays in it, at any depth."""

    one: np.ndarray
    more: tuple[np.ndarray, ...]
    named: Mapping[str, np.ndarray]
    nbytes: int = 0

    @property
    def all(self):
        return [self.one, *self.more, *self.named.values()]


def test_nobody_writes_into_what_is_kept_but_who_took_it_away():
    kept = ByteCache(MOST)
    made = kept.get("key", lambda: Arrays(*_arrays()))
    found = kept.find("key")
    assert found is made
    for array in made.all:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert kept.take("key") is made
    for array in made.all:
        array[0] = 1


def _arrays():
    return np.zeros(2), (np.zeros(2), np.zeros(2)), {"name": np.zeros(2)}
