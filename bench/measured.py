# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.measured`: hold one run against all thresholds, as one page with the commit.

Everything that a short run measures is measured on SQLite, the busy cloud and placing on each
database. Nothing on the page is of another run, and nothing is left out because it was missed.
"""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench import __main__ as http
from bench import beside
from bench.measuring.row import Comparison
from bench.reporting import thresholds
from bench.reporting.report import FIGURES
from bench.reporting.thresholds import Threshold
from tests.databases import KINDS


@dataclass(frozen=True, slots=True)
class Judged:
    """A threshold, and what the run measured of it.

    Attributes:
        threshold: The bound.
        value: The measured figure, in the threshold's unit.
        comparison: What it was computed from.
    """

    threshold: Threshold
    value: float
    comparison: Comparison


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.measured", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--page", type=Path, help="hold a run against the thresholds; write it here")
    what.add_argument(
        "--beside",
        type=Path,
        metavar="PATH",
        help="compare with another checkout; exit with 1 if a row is slower by more than 15 %%",
    )
    parser.add_argument("--no-peer", action="store_true", help="measure Treeclaim alone")
    parser.add_argument(
        "--beside-python",
        type=Path,
        metavar="FILE",
        help="interpreter of the other checkout (default: PATH/.venv/bin/python, or this one)",
    )
    parser.add_argument("--quick", action="store_true", help="with --beside: small worlds only")
    parser.add_argument(
        "--database", choices=KINDS, default=KINDS[0], help="with --beside: the database of both"
    )
    options = parser.parse_args()
    if options.beside is not None:
        checkout = beside.checkout_of(options.beside, options.beside_python)
        extent = beside.QUICK if options.quick else beside.FULL
        return 0 if beside.compare(checkout, options.database, extent, Console(width=180)) else 1
    judgements = [
        judged
        for database in KINDS
        for judged in judge(database, _measured(database, peer=not options.no_peer))
    ]
    options.page.write_text(page(judgements, commit()))
    return 0 if all(judged.threshold.is_met(judged.value) for judged in judgements) else 1


def commit() -> str:
    """Return the commit that is measured; it ends in `-dirty` where there are changes to it."""
    command = ("git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12")
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _measured(database: str, *, peer: bool) -> list[Comparison]:
    """Measure all cases of a database."""
    parts = http.PARTS if database == KINDS[0] else (http.BUSY, http.PLACING)
    arguments = ["--database", database, "--part", *parts, *([] if peer else ["--no-peer"])]
    return http.Bench(http.options_of(arguments)).measure()


def judge(database: str, comparisons: Sequence[Comparison]) -> Iterator[Judged]:
    """Hold what was measured on a database against its thresholds."""
    known = [threshold for threshold in thresholds.read() if threshold.database == database]
    for comparison in comparisons:
        for threshold in known:
            if threshold.case == comparison.ours.case:
                value = FIGURES[threshold.figure](comparison.ours, comparison.other)
                if value is not None:
                    yield Judged(threshold, value, comparison)


def page(judgements: Sequence[Judged], commit: str) -> str:
    """Return what was measured as a page in Markdown."""
    lines = [
        "# Measured against the thresholds",
        "",
        f"One run of `python -m bench.measured` on commit {commit}: {os.cpu_count()} cores,",
        f"shared by service, database and client; Python {platform.python_version()}.",
        "[Why some are missed](README.md#why-some-thresholds-are-missed).",
        "",
        "| case | database | to reach | measured | | treeclaim | beside |",
        "| --- | --- | --- | ---: | --- | ---: | ---: |",
    ]
    for judged in judgements:
        threshold, other = judged.threshold, judged.comparison.other
        verdict = "reached" if threshold.is_met(judged.value) else "missed"
        figure = f"{judged.value:,.2f}" if judged.value < 10 else f"{judged.value:,.0f}"
        cells = (
            threshold.case,
            threshold.database,
            str(threshold),
            figure,
            verdict,
            judged.comparison.ours.speed,
            other.speed if other else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
