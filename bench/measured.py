# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.measured`: compare one run with all thresholds, and write a page with the commit.

SQLite runs all parts; the other databases run the busy cloud and placing. All figures of the page are of the same
run, and missed thresholds are listed. `--beside` compares this checkout with another checkout instead.
"""

import argparse
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from bench import beside
from bench.__main__ import measure_cases
from bench.cases import BUSY, PARTS, PLACING
from bench.rows import OURS, PEER, Row, Threshold, by_case, thresholds
from bench.services import Extent
from tests.databases import KINDS


def main() -> int:
    """Measure, and write the page or the comparison."""
    parser = argparse.ArgumentParser(prog="python -m bench.measured", description=__doc__)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument(
        "--page", type=Path, help="compare a run with the thresholds; write the page here"
    )
    choice.add_argument(
        "--beside",
        type=Path,
        metavar="PATH",
        help="compare with another checkout; exit with 1 if a row is slower by more than 15 %%",
    )
    parser.add_argument("--no-peer", action="store_true", help="measure only Treeclaim")
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
    console = Console(width=180)
    if options.beside is not None:
        checkouts = options.beside, options.beside_python
        is_good = beside.compare(*checkouts, options.database, console, is_quick=options.quick)
        return 0 if is_good else 1
    lines, is_good = [], True
    for database in KINDS:
        parts = PARTS if database == KINDS[0] else (BUSY, PLACING)
        rows = measure_cases(Extent(database), console, parts=parts, has_peer=not options.no_peer)
        for is_met, line in judged(thresholds(database), rows):
            is_good = is_good and is_met
            lines.append(line)
    options.page.write_text(page(lines, _commit()))
    return 0 if is_good else 1


def _commit() -> str:
    """Return the measured commit; it ends in `-dirty` if there are uncommitted changes."""
    command = ("git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12")
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def judged(limits: Sequence[Threshold], rows: Sequence[Row]) -> Iterator[tuple[bool, str]]:
    """Compare rows with thresholds; yield whether each threshold is met, with its line of the page.

    A threshold without a measured row is missed, unless only a large run measures it.
    """
    cases = by_case(rows)
    for threshold in limits:
        sides = cases.get(threshold.case, {})
        value = threshold.value_of(sides)
        if value is None and threshold.is_large:
            continue
        is_met = value is not None and threshold.is_met(value)
        figure = "not measured" if value is None else f"{value:,.{2 if value < 10 else 0}f}"
        verdict = "reached" if is_met else "missed"
        speeds = [str(sides.get(name, "")) for name in (OURS, PEER)]
        cells = (threshold.case, threshold.database, str(threshold), figure, verdict, *speeds)
        yield is_met, f"| {' | '.join(cells)} |"


def page(lines: Sequence[str], commit: str) -> str:
    """Return the page in Markdown."""
    head = [
        "# Measured against the thresholds",
        "",
        f"One run of `python -m bench.measured` on commit {commit}: {os.cpu_count()} cores,",
        f"shared by service, database and client; Python {platform.python_version()}.",
        "[Why some are missed](README.md#why-some-thresholds-are-missed).",
        "",
        "| case | database | to reach | measured | | treeclaim | openstack-placement |",
        "| --- | --- | --- | ---: | --- | ---: | ---: |",
    ]
    return "\n".join([*head, *lines]) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
