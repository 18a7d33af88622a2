# SPDX-License-Identifier: Apache-2.0
"""`shuffle` draws a number for one tree: of several trees, the tree with the smallest root uuid."""

import itertools
from dataclasses import replace

import pytest

from tests.properties.forest_adapter import FoundCandidates, ask, forest_of
from tests.reference.candidates import SHARING, Reference
from tests.reference.scores import Scores
from tests.reference.world import Group, Provider, Request, Stock, World, uuid_of

SHARED = frozenset({SHARING})
RACK = frozenset({"A"})


@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_candidates_of_several_trees_are_shuffled_by_the_smallest_root(seed):
    """All is given by pools, so that each candidate has two trees, whichever slot comes first."""
    disks = [
        Provider(f"d{number}", None, {"DISK_GB": Stock(9)}, SHARED, RACK) for number in range(4)
    ]
    devices = [
        Provider(f"f{number}", None, {"FPGA": Stock(9)}, SHARED, RACK) for number in range(4)
    ]
    world = World((*disks, *devices))
    groups = (Group("_D", {"DISK_GB": 1}), Group("_F", {"FPGA": 1}))
    request = Request(groups, order=(("shuffle", (seed,), 1),))
    smaller = [
        uuid_of(disk.name) < uuid_of(device.name)
        for disk, device in itertools.product(disks, devices)
    ]
    assert len(set(smaller)) == 2
    scores = Scores(Reference(world), request)
    for variant in (request, replace(request, groups=groups[::-1])):
        result = FoundCandidates(world, ask(forest_of(world), variant))
        assert len(result.listed) == 16
        expected = [round(float(scores.score(candidate)), 12) for candidate in result.listed]
        assert result.scores == expected == sorted(expected, reverse=True)
