# SPDX-License-Identifier: Apache-2.0
"""Thresholds judge the figures of a run, and a run says what it did not measure."""

import pytest
from rich.console import Console

from bench.__main__ import show
from bench.measured import judged, page
from bench.rows import OURS, PEER, RATE, RATIOS, UNITS, Row, Threshold, by_case, thresholds
from tests.databases import KINDS

FASTER = Threshold("flat", "times the peer", "sqlite", at_least=10)


@pytest.mark.parametrize("database", KINDS)
def test_every_threshold_has_one_bound_on_a_known_figure(database):
    known = thresholds(database)
    assert len({(one.case, one.of) for one in known}) == len(known) > 10
    for one in known:
        assert one.of in (*UNITS, *RATIOS)
        assert (one.at_least is None) != (one.below is None)


@pytest.mark.parametrize(
    ("unit", "ours", "theirs", "is_met"),
    [
        ("ms", 2.0, 20.0, True),
        ("ms", 2.1, 20.0, False),
        (RATE, 20.0, 2.0, True),
        (RATE, 20.0, 2.1, False),
    ],
)
def test_run_fails_by_a_ratio_below_its_threshold(unit, ours, theirs, is_met):
    rows = [Row("flat", OURS, ours, unit), Row("flat", PEER, theirs, unit)]
    other = Threshold("other", "ms", "sqlite", below=1)
    assert show(Console(quiet=True), rows, [FASTER, other]) is is_met


@pytest.mark.parametrize(("base", "is_met"), [(5.0, False), (5.1, True), (None, None)])
def test_figure_is_compared_with_its_base(base, is_met):
    threshold = Threshold("flat", "times the base", "sqlite", below=2)
    value = threshold.value_of(by_case([Row("flat", OURS, 10.0, base=base)])["flat"])
    assert (value if value is None else threshold.is_met(value)) is is_met


def test_results_page_lists_missed_thresholds_and_what_was_not_measured():
    known = [
        FASTER,
        Threshold("flat", "ms", "sqlite", below=1),
        Threshold("not run", "ms", "sqlite", below=1),
        Threshold("large", "ms", "sqlite", below=1, is_large=True),
    ]
    rows = [Row("flat", OURS, 2.0), Row("flat", PEER, 40.0)]
    verdicts, lines = zip(*judged(known, rows), strict=True)
    assert verdicts == (True, False, False)
    assert page(lines, "0123456789ab").splitlines()[8:] == [
        "| flat | sqlite | at least 10 times the peer | 20 | reached | 2.00 ms | 40.0 ms |",
        "| flat | sqlite | below 1 ms | 2.00 | missed | 2.00 ms | 40.0 ms |",
        "| not run | sqlite | below 1 ms | not measured | missed |  |  |",
    ]
