# SPDX-License-Identifier: Apache-2.0
"""Reductions of the exploration lose no outcome (decision 0010)."""

import pytest

from tests.databases import EACH_SERVER
from tests.store.schedules.cases import Case
from tests.store.schedules.defects import DEFECTS
from tests.store.schedules.exploration import Exploration
from tests.store.schedules.worlds import WORLDS


def outcomes(place, case, *, reduced):
    """Return the number of schedules, all outcomes, and the wrong outcomes.

    Outcomes of two identical clients are compared without regard to their order.
    """
    exploration = Exploration(place, case, reduced=reduced)
    distinct, wrong = set(), set()
    for _, outcome in exploration.outcomes():
        alike = len(set(case.scripts)) == 1
        outcome_key = tuple(sorted(outcome.results)) if alike else outcome.results, outcome.after
        distinct.add(outcome_key)
        if exploration._reasons(outcome):
            wrong.add(outcome_key)
    return exploration.begun_count, distinct, wrong


def compare(place, case):
    """Compare the outcomes with and without reductions; return the wrong outcomes."""
    begun_count, distinct, wrong = outcomes(place, case, reduced=True)
    all_begun_count, all_distinct, all_wrong = outcomes(place, case, reduced=False)
    assert distinct == all_distinct
    assert wrong == all_wrong
    assert begun_count < all_begun_count
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("place", ["sqlite", *EACH_SERVER], indirect=True)
def test_reduction_finds_all_planted_defects(place, monkeypatch):
    defects = [defect for defect in DEFECTS if place.kind in defect.databases]
    assert defects
    for defect in defects:
        with monkeypatch.context() as patch:
            defect.plant(patch)
            case = Case(place.kind, defect.world, defect.scripts, preemptions=2)
            assert compare(place, case), defect.name


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite", *EACH_SERVER], indirect=True)
def test_reduction_keeps_outcomes_of_correct_writes(place):
    for world, *scripts in (
        ("shared-shard", "claim", "prune"),
        ("followed-present", "put-old", "read-often"),
    ):
        assert not compare(place, Case(place.kind, WORLDS[world], tuple(scripts), preemptions=1))


@pytest.mark.long
@pytest.mark.parametrize("place", EACH_SERVER, indirect=True)
@pytest.mark.parametrize(
    ("world", "scripts"),
    [
        ("claims-unrecorded", ("delete", "move")),
        ("claims-present", ("put-old", "put-old")),
        ("trees", ("move-root", "delete-leaf")),
        ("parts", ("delete-provider", "apply-parts")),
        ("groups-unrecorded", ("group-exchange", "move")),
    ],
)
def test_reduction_keeps_outcomes_of_two_preemptions(place, world, scripts):
    assert not compare(place, Case(place.kind, WORLDS[world], scripts, preemptions=2))
