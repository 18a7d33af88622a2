# SPDX-License-Identifier: Apache-2.0
"""The Forest's cache stays within its bound of bytes, keys included, and evicts the least used entries."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treeclaim.forest.bounds.cache import ByteCache

MOST = 20_000


@dataclass(frozen=True)
class Value:
    """A value of a known size."""

    nbytes: int


KEYS = st.one_of(st.integers(0, 9), st.text(max_size=300), st.tuples(st.text(max_size=300)))


@given(st.lists(st.tuples(KEYS, st.integers(0, 6_000)), max_size=60))
def test_cache_stays_within_its_bytes_and_keeps_the_latest(values):
    cache, latest = ByteCache(MOST), []
    for key, size in values:
        cache.keep(key, Value(size))
        latest = [key, *(cached_key for cached_key in latest if cached_key != key)]
        # Oldest first: finding a key makes it the latest.
        present = [
            cached_key for cached_key in reversed(latest) if cache.find(cached_key) is not None
        ][::-1]
        cached = map(cache.find, reversed(present))
        assert sum(value.nbytes for value in cached if isinstance(value, Value)) <= MOST
        assert present
        assert present == latest[: len(present)]
        latest = present


@dataclass(frozen=True)
class Arrays:
    """A value with arrays in it, at any depth."""

    first: np.ndarray
    further: tuple[np.ndarray, ...]
    named: Mapping[str, np.ndarray]
    nbytes: int = 0

    @property
    def all(self):
        return [self.first, *self.further, *self.named.values()]


def test_cached_arrays_are_read_only_until_taken():
    cache = ByteCache(MOST)
    value = cache.get("key", lambda: Arrays(*_arrays()))
    result = cache.find("key")
    assert result is value
    for array in value.all:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert cache.take("key") is value
    for array in value.all:
        array[0] = 1


def _arrays():
    return np.zeros(2), (np.zeros(2), np.zeros(2)), {"name": np.zeros(2)}
