# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`: measure Treeclaim, and openstack-placement beside it."""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.cases import BUSY, CASES, PARTS, QUIET
from bench.rows import OURS, PEER, Row, Threshold, by_case, figure, speed_up, thresholds
from bench.services import PLACEMENT, TREECLAIM, Extent, measure
from tests.databases import KINDS


def main() -> int:
    """Measure the parts in the options; return 1 if a threshold is missed."""
    options = _options()
    # Without a terminal, rich would wrap the tables at 80 columns.
    console = Console(width=None if sys.stdout.isatty() else 180)
    extent = Extent(
        options.database,
        seconds=8.0 if options.large else 2.0,
        workers=options.workers,
        delay=options.delay / 1000,
    )
    rows = measure_cases(
        extent,
        console,
        parts=options.part,
        has_peer=not options.no_peer,
        has_large=options.large,
        only=options.only,
    )
    # The thresholds hold for a database without an added delay.
    limits = [] if options.delay else thresholds(options.database)
    return 0 if show(console, rows, limits) else 1


def measure_cases(
    extent: Extent,
    console: Console,
    *,
    parts: Sequence[str],
    has_peer: bool,
    has_large: bool = False,
    only: str = "",
) -> list[Row]:
    """Measure the cases of some parts whose world has `only` in its name; skip large worlds unless `has_large`."""
    cases = [
        case
        for case in CASES
        if case.part in parts and case.is_large <= has_large and only in case.make().name
    ]
    services = [TREECLAIM, PLACEMENT] if has_peer else [TREECLAIM]
    return list(measure(cases, services, extent, console))


def show(console: Console, rows: Sequence[Row], limits: Sequence[Threshold]) -> bool:
    """Print the figures beside the thresholds; return whether all thresholds are met."""
    table = Table(title="Measured over HTTP", title_justify="left")
    for name in ("case", OURS, "without", PEER, "ratio"):
        table.add_column(name)
    cases = by_case(rows)
    for case, sides in cases.items():
        ours, peer_row = sides[OURS], sides.get(PEER)
        base = "" if ours.base is None else figure(ours.base, ours.unit)
        beside = (
            ("", "") if peer_row is None else (str(peer_row), f"{speed_up(ours, peer_row):,.1f} x")
        )
        table.add_row(case, str(ours), base, *beside)
    console.print(table)
    table = Table(title="Thresholds (bench/thresholds.yaml)", title_justify="left")
    for name in ("case", "threshold", "measured", ""):
        table.add_column(name)
    is_good = True
    for threshold in limits:
        value = threshold.value_of(cases.get(threshold.case, {}))
        if value is None:
            cells = ("", "only with --large" if threshold.is_large else "not measured")
        else:
            is_met = threshold.is_met(value)
            is_good = is_good and is_met
            cells = (f"{value:.2f}", "pass" if is_met else "FAIL")
        table.add_row(threshold.case, str(threshold), *cells)
    console.print(table)
    return is_good


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--large", action="store_true", help="also measure worlds of up to a million"
    )
    parser.add_argument("--database", choices=KINDS, default="sqlite", help="of both services")
    parser.add_argument("--workers", type=int, default=1, help="processes of each service")
    parser.add_argument(
        "--part",
        nargs="+",
        choices=PARTS,
        default=[BUSY, QUIET],
        help="parts to measure (default: busy quiet)",
    )
    parser.add_argument(
        "--delay",
        type=float,
        default=0.0,
        metavar="MS",
        help="milliseconds added to each round trip to the database; disables the thresholds",
    )
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="measure only worlds with this text in the name"
    )
    parser.add_argument("--no-peer", action="store_true", help="measure only Treeclaim")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
