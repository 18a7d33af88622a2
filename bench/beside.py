# SPDX-License-Identifier: Apache-2.0
"""Measures this checkout beside another checkout, in alternating turns on the same worlds.

A single figure of a shared machine means little, but two services that take turns within seconds meet the
same load. Each case is therefore measured in pairs, every second pair in reversed order. The ratio of a row is
the median of the ratios of its pairs.
"""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from bench.cases import BUSY, CASES, PLACING, QUIET
from bench.clients.endpoint import median
from bench.measures import busy
from bench.rows import SECONDS, Row, figure, speed_up
from bench.services import Case, Extent, Service, measure
from tests import peer

THIS = "this checkout"
OTHER = "the other checkout"

SLOWER = 1.15
"""A row whose ratio is above this counts as slower."""

QUICK_EXTENT = Extent(pairs=5, rounds=1, steps=50, seconds=0.4)
FULL_EXTENT = Extent(pairs=5, rounds=2, steps=100, seconds=1.0)

_LARGEST = 10_000
"""Providers of the largest world of a quick run."""


def compare(
    folder: Path, python: Path | None, database: str, console: Console, *, is_quick: bool
) -> bool:
    """Measure both checkouts, print a table, and return whether no row of this one is slower.

    Args:
        folder: The other source tree.
        python: The interpreter that has its dependencies; by default that of its virtual environment, or this one.
        database: The kind of database of both services.
        console: Receives the table.
        is_quick: Measure only small worlds.

    Raises:
        SystemExit: if an interpreter does not import Treeclaim from its source tree.
    """
    folder = folder.resolve()
    interpreter = folder / ".venv" / "bin" / "python"
    other_python = python or (interpreter if interpreter.exists() else Path(sys.executable))
    services = [
        checkout(THIS, Path(__file__).parents[1], Path(sys.executable)),
        checkout(OTHER, folder, other_python.absolute()),
    ]
    extent = replace(QUICK_EXTENT if is_quick else FULL_EXTENT, database=database)
    cases = list(_cases(database, is_quick=is_quick))
    return show(list(measure(cases, services, extent, console)), console)


def checkout(name: str, folder: Path, python: Path) -> Service:
    """Return the service of a source tree, run by an interpreter that has its dependencies.

    Raises:
        SystemExit: if the interpreter does not import Treeclaim from there.
    """
    source = folder / "src"
    code = "import treeclaim; print(treeclaim.__file__)"
    result = subprocess.run(
        (python, "-c", code),
        check=False,
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
    )
    if result.returncode or source not in Path(result.stdout.strip()).parents:
        message = result.stderr.strip() or f"it imports {result.stdout.strip()}"
        raise SystemExit(f"{python} cannot run the checkout {folder}: {message}")
    return Service(name, partial(_start, python=python, source=source))


def _start(
    database: str, folder: Path, workers: int, *, python: Path, source: Path
) -> AbstractContextManager[tuple[str, psutil.Process]]:
    """Start a checkout on a database; drop Treeclaim's tables first, so that it creates those of its own release."""
    engine = sa.create_engine(database)
    tables = sa.MetaData()
    tables.reflect(engine, only=lambda name, _: name.startswith("treeclaim_"))
    tables.drop_all(engine)
    engine.dispose()
    return peer.treeclaim_on(database, folder, workers, python=python, source=source)


def _cases(database: str, *, is_quick: bool) -> Iterator[Case]:
    """Yield the cases to compare: only small worlds in a quick run, and never the very large worlds."""
    for case in CASES:
        if (
            case.part in (BUSY, QUIET, PLACING)
            # Steps do not shorten the open loop, which runs for a fixed time.
            and busy.open_loop not in case.measures
            and (case.needs_database or database == "sqlite")
            and (case.has_peer or not case.is_large)
            and not (is_quick and (case.is_large or case.make().size > _LARGEST))
        ):
            yield case


def show(rows: list[Row], console: Console) -> bool:
    """Print a row for each case; return whether no row of this checkout is slower."""
    cases: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        # A single start is no measurement of the time of starts.
        if row.unit != SECONDS:
            cases[row.case][row.endpoint].append(row)
    table = Table(title=f"{THIS} beside {OTHER}; above 1: slower", title_justify="left")
    for title in ("case", THIS, OTHER, "ratio", "of the pairs", ""):
        table.add_column(title)
    slower = 0
    for case, sides in cases.items():
        # A side that completed nothing, such as claims on a full provider, has no ratio.
        pairs = [
            pair
            for pair in zip(sides[THIS], sides[OTHER], strict=True)
            if all(row.value for row in pair)
        ]
        if not pairs:
            continue
        ratios = sorted(speed_up(other_row, this_row) for this_row, other_row in pairs)
        is_slower = median(ratios) > SLOWER
        slower += is_slower
        table.add_row(
            case,
            *(
                figure(median([row.value for row in row_pairs]), row_pairs[0].unit)
                for row_pairs in zip(*pairs, strict=True)
            ),
            f"{median(ratios):.2f}",
            f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
            "SLOWER" if is_slower else "",
        )
    console.print(table)
    console.print(f"{slower} rows are slower by more than {SLOWER - 1:.0%}.")
    return not slower
