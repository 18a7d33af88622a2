# SPDX-License-Identifier: Apache-2.0
"""The comparison of two checkouts marks rows that are slower by more than 15 %."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from bench.beside import OTHER, THIS, checkout, show
from bench.rows import MIB, MS, RATE, Row
from tests.paths import ROOT


def compare(ours, theirs, unit=MS):
    """Return the verdict and the printed table of pairs of one case."""
    rows = [Row("a search", THIS, value, unit) for value in ours]
    rows += [Row("a search", OTHER, value, unit) for value in theirs]
    output = io.StringIO()
    return show(rows, Console(file=output, width=180)), output.getvalue()


@pytest.mark.parametrize(
    ("ours", "theirs", "is_good"),
    [
        ((11.4, 11.4, 11.4), (10, 10, 10), True),
        ((11.6, 11.6, 11.6), (10, 10, 10), False),
        # Both are slow at the same time: only the ratio of a pair counts.
        ((10, 100, 1000), (10, 100, 1000), True),
        # A single bad pair changes no median.
        ((10, 10, 50), (10, 10, 10), True),
    ],
)
def test_slower_latency_fails_the_comparison(ours, theirs, is_good):
    verdict, table = compare(ours, theirs)
    assert verdict is is_good
    assert ("SLOWER" in table) is not is_good


def test_lower_rate_fails_the_comparison():
    assert compare((100,), (80,), RATE)[0]
    verdict, table = compare((80,), (100,), RATE)
    assert not verdict
    assert "1.25" in table


def test_larger_memory_fails_the_comparison():
    assert not compare((120,), (100,), MIB)[0]


def test_ratio_and_its_spread_are_printed():
    _, table = compare((8, 10, 30), (10, 10, 10))
    assert "1.00" in table
    assert "0.80 to 3.00" in table


def test_interpreter_must_import_the_other_checkout(tmp_path):
    checkout(THIS, ROOT, Path(sys.executable))
    with pytest.raises(SystemExit, match="cannot run the checkout"):
        checkout(OTHER, tmp_path, Path(sys.executable))


def test_rates_of_nothing_are_not_compared():
    verdict, table = compare((0, 100), (0, 100), RATE)
    assert verdict
    assert "1.00 to 1.00" in table
    assert compare((0,), (10,), RATE)[0]
