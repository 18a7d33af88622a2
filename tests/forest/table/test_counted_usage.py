# SPDX-License-Identifier: Apache-2.0
"""Changes by claims show in everything that a Forest has computed already."""

from tests.forest.building import BEGINNING, body_of, forest_of, record
from treeclaim.forest.order.totals import totals_of
from treeclaim.model.changes import Changes, UsageChange
from treeclaim.model.request import CandidateRequest, RequestGroup

REQUEST = CandidateRequest((RequestGroup("", {"VCPU": 3}),))


def host(used, generation):
    return record(1, None, 1, {"VCPU": (8, used), "DISK_GB": 4}, generation=generation)


def spare():
    return record(2, None, 2, {"VCPU": 8})


def test_counted_usage_equals_a_full_load():
    forest = forest_of([host(0, 0), spare()])
    body_of(forest, REQUEST)
    totals_of(forest, "VCPU")
    # The second change is of a class that the host has none of: old data, which nobody sees.
    change = UsageChange({0: 6, 3: 1}, 1, 1, 0.0)
    news = Changes(
        BEGINNING, complete=False, records=[], removed=[], catalogue=None, usage={1: change}
    )
    assert forest.agrees_with(news)
    forest.apply(news)
    fresh = forest_of([host(6, 1), spare()])
    assert forest.records() == fresh.records()
    assert body_of(forest, REQUEST) == body_of(fresh, REQUEST)
    assert totals_of(forest, "VCPU").tree_used.tolist() == [6, 0]
    assert not forest.agrees_with(news)
