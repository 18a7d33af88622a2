# SPDX-License-Identifier: Apache-2.0
"""The thresholds of the benchmark are about what it measures, and judge it."""

from collections import Counter

import pytest
from rich.console import Console

from bench import cases, measured, seeing
from bench.clients import loads
from bench.measuring.row import Comparison, Row
from bench.placing import names
from bench.reporting import thresholds
from bench.reporting.report import FIGURES, show
from bench.reporting.thresholds import Threshold
from tests.clouds import WorldMaker

MOST_NAMED = 1_001
"""Hosts and pool of the largest world whose providers are counted in the name of a row."""

LOADS = ("claims, 1 client", "claims, 16 clients", "search and claim, 16 clients")


def names_of_rows():
    """The cases of a run with `--large`, and those of modules of their own."""
    yield from names_of_busy_rows()
    yield from seeing.CASES
    for make in (*cases.SHORT, *cases.SHORT_ALONE, *cases.LARGE, *cases.LARGE_ALONE):
        # A world of a few trees has the names of the real one but for its size.
        world = make()
        for limit in world.limits:
            yield f"{world.name}, " + ("no limit" if limit is None else f"limit={limit}")
        reads = loads.reads(None, world)
        yield from (f"{world.name}: {name}" for name in ("refreshes of a host", *LOADS, *reads))
    yield from names()


def names_of_busy_rows():
    """The cases of the busy cloud, and of loading."""
    flat = cases.busy_flat()
    for name in (
        "after a claim, new flavor",
        "one claim, one client",
        *(f"{name}, 16 clients" for name in loads.contended(None, flat)),
        "searches while claims arrive, open loop",
    ):
        yield f"{flat.name}, {name}"
    yield f"{cases.busy_nested().name}, after a claim, new flavor"
    for make in cases.BUSY_TREES:
        yield f"{make().name}, after a claim, new flavor"
        yield f"{make().name}, after a change of a tree, new flavor"
    for make in (cases.busy_flat, *cases.LARGE_ALONE):
        yield f"{make().name}: first answer"


@pytest.fixture
def small_worlds(monkeypatch):
    """Let worlds have their first providers only: two million would be made for names alone."""
    add = WorldMaker.add
    added = Counter()

    def add_first(maker, *what, **more):
        added[maker] += 1
        return add(maker, *what, **more) if added[maker] <= MOST_NAMED else ""

    monkeypatch.setattr(WorldMaker, "add", add_first)
    monkeypatch.setattr(WorldMaker, "uuid", lambda _: "")


@pytest.mark.slow
@pytest.mark.usefixtures("small_worlds")
def test_every_threshold_is_about_a_row_of_the_benchmark():
    rows = set(names_of_rows())
    assert [threshold.case for threshold in thresholds.read() if threshold.case not in rows] == []


def test_every_threshold_has_one_bound_on_a_known_figure():
    known = thresholds.read()
    assert (
        len({(threshold.case, threshold.figure, threshold.database) for threshold in known})
        == len(known)
        > 20
    )
    for threshold in known:
        assert threshold.figure in FIGURES
        assert (threshold.at_least is None) != (threshold.below is None)


@pytest.mark.parametrize(("median", "is_met"), [(2.0, True), (2.1, False)])
def test_a_run_fails_by_a_figure_below_its_threshold(median, is_met):
    comparisons = [Comparison(Row("flat", "ours", median), Row("flat", "theirs", 20.0))]
    known = [
        Threshold("flat", "times as fast", at_least=10),
        Threshold("other", "milliseconds", below=1),
    ]
    console = Console(quiet=True)
    assert show(console, comparisons, known) is is_met


def test_results_page_lists_missed_thresholds(monkeypatch):
    monkeypatch.setattr(
        thresholds,
        "read",
        lambda: [
            Threshold("flat", "times as fast", at_least=10),
            Threshold("flat", "milliseconds", below=1),
            Threshold("flat", "milliseconds", below=1, database="mariadb"),
            Threshold("not run", "milliseconds", below=1),
        ],
    )
    comparisons = [Comparison(Row("flat", "ours", 2.0), Row("flat", "theirs", 40.0))]
    text = measured.page(list(measured.judge("sqlite", comparisons)), "0123456789ab")
    assert "on commit 0123456789ab" in text
    assert text.splitlines()[8:] == [
        "| flat | sqlite | at least 10 times as fast | 20 | reached | 2.0 ms | 40.0 ms |",
        "| flat | sqlite | below 1 milliseconds | 2.00 | missed | 2.0 ms | 40.0 ms |",
    ]
