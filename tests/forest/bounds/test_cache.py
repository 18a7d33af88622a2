# SPDX-License-Identifier: Apache-2.0
"""The one cache of the Forest stays within its bytes, keys included, and forgets what is used least."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.forest_adapter import ask, candidate_request, forest_of
from tests.reference.world import Group, Provider, Request, Stock, World
from treeclaim.forest.answer import templates
from treeclaim.forest.bounds import cache
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.bounds.cache import ByteCache, size_of
from treeclaim.forest.explain.explain import Focus, explain_request
from treeclaim.forest.order import totals
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.question import plan

MOST = 20_000


@dataclass(frozen=True)
class Value:
    """Takes so many bytes."""

    nbytes: int


KEYS = st.one_of(st.integers(0, 9), st.text(max_size=300), st.tuples(st.text(max_size=300)))
STEPS = st.tuples(st.sampled_from(["keep", "take", "find"]), KEYS, st.integers(0, 6_000))


@given(st.lists(STEPS, max_size=60))
def test_cache_stays_within_its_bytes_and_keeps_the_latest(steps):
    kept, latest = ByteCache(MOST), []
    for name, key, size in steps:
        if name == "keep":
            kept.keep(key, Value(size))
        elif name == "take":
            kept.take(key)
            latest = [one for one in latest if one != key]
        result = kept.find(key)
        assert name != "take" or result is None
        if result is not None:
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


def test_cached_arrays_are_read_only_until_taken():
    kept = ByteCache(MOST)
    made = kept.get("key", lambda: Arrays(*_arrays()))
    result = kept.find("key")
    assert result is made
    for array in made.all:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert kept.take("key") is made
    for array in made.all:
        array[0] = 1


def _arrays():
    return np.zeros(2), (np.zeros(2), np.zeros(2)), {"name": np.zeros(2)}


def test_arrays_cached_by_a_forest_are_read_only():
    """Not even what a value works out later, and hands out from then on."""
    node = Group("_A", {"VCPU": 1}, required=(frozenset({"CUSTOM_GPU"}),))
    request = Request((node, Group("_B", {"VCPU": 1})), isolated=frozenset({"_A", "_B"}))
    world = World(
        tuple(
            provider
            for host in range(2)
            for provider in (
                Provider(f"h{host}"),
                Provider(f"n{host}", f"h{host}", {"VCPU": Stock(4)}, frozenset({"CUSTOM_GPU"})),
                Provider(f"m{host}", f"h{host}", {"VCPU": Stock(4)}),
            )
        )
    )
    forest = forest_of(world)
    for order in ((), (("pack", (), 1), ("near", ("_A", "_B"), 1))):
        asked = replace(request, order=order)
        ask(forest, asked)
        count_capacity(forest, candidate_request(asked), CapacityLimits((), 10), Budget())
        explain_request(forest, candidate_request(asked), Focus())
    arrays = [
        array
        for kept in (forest.cache, forest.pairs, forest.counts)
        for value, *_ in kept._values.values()
        # Sums that follow what is written are handed out as views that cannot be written.
        if type(value) is not totals._CachedTotals
        for array in arrays_in(value)
    ]
    assert len(arrays) > 20
    assert not [array for array in arrays if array.flags.writeable]


def test_plan_and_template_caches_hold_only_read_only_arrays():
    world = World(
        (Provider("h", None, {"VCPU": Stock(4)}), Provider("c", "h", {"VCPU": Stock(4, used=1)}))
    )
    groups = (
        Group("", {"VCPU": 7}),
        Group("_A", {"VCPU": 1}, required=(frozenset({"CUSTOM_FAST"}),)),
    )
    requests = [
        Request(groups[:1], can_split=frozenset({"VCPU"})),
        Request(groups, isolated=frozenset({"_A"})),
        Request((replace(groups[0], resources={"VCPU": 1}),)),
        Request(tuple(Group(suffix, {"VCPU": 1}) for suffix in ("_A", "_B"))),
    ]
    for request in requests:
        ask(forest_of(world), request)
    found = []
    for kept in (plan._plans, templates._templates):
        assert kept._values
        assert not kept._makes_read_only
        found += arrays_in(tuple(value for value, *_ in kept._values.values()))
    assert found
    assert not [array for array in found if array.flags.writeable]


def arrays_in(value):
    """All arrays that belong to a value, those that were worked out when asked for included."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Mapping):
        yield from arrays_in(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from arrays_in(part)
    elif is_dataclass(value):
        names = {field.name for field in fields(value)} | getattr(value, "__dict__", {}).keys()
        for name in names:
            yield from arrays_in(getattr(value, name))


def test_cache_clears_at_once_and_frees_memory_gradually():
    kept = ByteCache(10**9)
    values = [Counting(number) for number in range(1000)]
    for number, value in enumerate(values):
        kept.keep(number, value)
    del value, values
    Counting.dropped = 0
    kept.clear()
    assert Counting.dropped == 0
    assert [kept.find(number) for number in range(20)] == [None] * 20
    assert 20 < Counting.dropped < 1000
    for number in range(1000, 1100):
        kept.keep(number, Counting(number))
    assert Counting.dropped == 1000
    assert kept.take(5) is None
    assert kept.find(1001) is not None


class Counting:
    """A value that is counted when it goes."""

    nbytes = 1
    dropped = 0

    def __init__(self, number):
        self.number = number

    def __del__(self):
        Counting.dropped += 1
