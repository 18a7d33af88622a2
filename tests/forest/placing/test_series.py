# SPDX-License-Identifier: Apache-2.0
"""The state that a series keeps between calls, and its new beginnings."""

from dataclasses import replace
from time import thread_time

import pytest

from tests.forest.building import forest_of as forest_of_records
from tests.forest.building import make_changes, record
from tests.properties.forest_adapter import candidate_request, forest_of
from tests.reference.candidates import SHARING
from tests.reference.world import Group, Provider, Request, Stock, World
from treeclaim.forest.placing import series as series_module
from treeclaim.forest.placing.series import OutOfTimeError, PlacementSeries
from treeclaim.model.extension.placing import PlacingRequest
from treeclaim.model.request import CandidateRequest, RequestGroup

BYTES = 1_000_000
LONG = 3_600.0
WANTED = CandidateRequest((RequestGroup("", {"VCPU": 4}),))
CONSUMER = PlacingRequest((WANTED,), ("c",), "p", "u", "t")


@pytest.fixture
def forest():
    return forest_of_records([record(number, inventories={"VCPU": 8}) for number in (1, 2)])


@pytest.mark.parametrize(
    "change",
    [
        record(1, inventories={"VCPU": 4}),
        record(1, inventories={"VCPU": 8, "DISK_GB": 1}),
        record(3, inventories={"VCPU": 8}),
    ],
    ids=["another amount", "another class", "another host"],
)
def test_series_restarts_after_a_change_beyond_usage(forest, change):
    series = PlacementSeries(forest, BYTES)
    assert series.place(CONSUMER, thread_time() + LONG)
    forest.apply(make_changes(change))
    assert not series.may_follow(forest)


KINDS = {
    "of one tree each": Request((Group("", {"VCPU": 1}),)),
    "shared": Request((Group("", {"VCPU": 1, "DISK_GB": 1}),)),
    "split": Request((Group("", {"VCPU": 1}),), can_split=frozenset({"VCPU"})),
}
"""Requests of each kind of query; suffixes make as many as are wanted."""


def make_pool_forest():
    """A Forest of hosts and a pool that shares its disk with them."""
    racks = frozenset({"A"})
    hosts = [
        Provider(f"h{number}", None, {"VCPU": Stock(900)}, aggregates=racks) for number in (1, 2)
    ]
    disk = {"DISK_GB": Stock(900)}
    store = Provider("store", None, {"DISK_GB": Stock(300)})
    return forest_of(
        World((store, *hosts, Provider("pool", None, disk, frozenset({SHARING}), racks)))
    )


def make_request(request, number):
    """A request of a kind, distinct for each number."""
    (group,) = request.groups
    extra_group = Group(f"_{number}", {"VCPU": 1})
    larger = candidate_request(replace(request, groups=(group, extra_group)))
    return PlacingRequest((larger,), ("c",), "p", "u", "t")


@pytest.mark.parametrize("kind", KINDS)
def test_searches_of_each_kind_are_counted_and_bounded(kind, monkeypatch):
    most = 200_000
    monkeypatch.setattr(series_module, "MOST_BYTES", most)
    series = PlacementSeries(make_pool_forest(), 100 * BYTES)
    sizes = []
    for number in range(100):
        assert series.place(make_request(KINDS[kind], number), thread_time() + LONG)
        sizes.append(series.nbytes)
    each = sizes[1] - sizes[0]
    assert each > 1_000
    assert max(sizes) <= most + 2 * each
    # The series drops its searches when they exceed the limit.
    assert sizes != sorted(sizes)


def test_use_of_a_pool_is_seen_by_requests_for_the_pool():
    """A lending pool is in no tree of the candidate, yet it loses room."""
    shared = Request((Group("", {"VCPU": 1, "DISK_GB": 700}),))
    alone = Request((Group("", {"DISK_GB": 300}, in_tree=("store", "pool")),))
    series = PlacementSeries(make_pool_forest(), 100 * BYTES)
    placements = []
    for request in (alone, shared, alone):
        placing = PlacingRequest((candidate_request(request),), ("c",), "p", "u", "t")
        placements.append(series.place(placing, thread_time() + LONG) is not None)
    # The store has room for the first request only; the second uses the pool.
    assert placements == [True, True, False]


def test_series_raises_when_its_time_is_over(forest):
    with pytest.raises(OutOfTimeError):
        PlacementSeries(forest, BYTES).place(CONSUMER, thread_time() - 1)
