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
    ("unit", "ours", "theirs", "is_good"),
    [
        (MS, (11.4, 11.4, 11.4), (10, 10, 10), True),
        (MS, (11.6, 11.6, 11.6), (10, 10, 10), False),
        # Both are slow at the same time: only the ratio of a pair counts.
        (MS, (10, 100, 1000), (10, 100, 1000), True),
        # A single bad pair changes no median.
        (MS, (10, 10, 50), (10, 10, 10), True),
        (RATE, (100,), (80,), True),
        (RATE, (80,), (100,), False),
        # Rates of nothing are not compared.
        (RATE, (0, 100), (0, 100), True),
        (RATE, (0,), (10,), True),
        (MIB, (120,), (100,), False),
    ],
)
def test_row_that_is_worse_fails_the_comparison(unit, ours, theirs, is_good):
    verdict, table = compare(ours, theirs, unit)
    assert verdict is is_good
    assert ("SLOWER" in table) is not is_good


def test_ratio_and_its_spread_are_printed():
    _, table = compare((8, 10, 30), (10, 10, 10))
    assert "1.00" in table
    assert "0.80 to 3.00" in table
    assert "1.25" in compare((80,), (100,), RATE)[1]
    assert "1.00 to 1.00" in compare((0, 100), (0, 100), RATE)[1]


def test_interpreter_must_import_the_other_checkout(tmp_path):
    checkout(THIS, ROOT, Path(sys.executable))
    with pytest.raises(SystemExit, match="cannot run the checkout"):
        checkout(OTHER, tmp_path, Path(sys.executable))
