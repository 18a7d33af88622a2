# SPDX-License-Identifier: Apache-2.0
"""Measures this checkout beside another checkout, in alternating turns on the same worlds.

A figure of a shared machine means little. The ratio of two services that take turns within seconds
means much: both meet the same load. So every case is a series of pairs, the second pair in reversed
order, and the ratio of a row is the median of the ratios of its pairs.
"""

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from bench import cases
from bench.__main__ import options_of
from bench.clients.endpoint import EXTENDED, Endpoint, median
from bench.measuring import busy_cloud
from bench.measuring.loading import first_answer, serving
from bench.measuring.row import Row
from bench.measuring.searches import measure_loads, measure_searches
from bench.placing import CASES, SEARCHES, Running
from tests import peer
from tests.clouds import World, nested

THIS = "this checkout"
OTHER = "the other checkout"

SLOWER = 1.15
"""A row whose ratio is above this counts as slower."""

Measure = Callable[[World, Sequence[Endpoint]], Iterator[Row]]


@dataclass(frozen=True, slots=True)
class Checkout:
    """A source tree of Treeclaim, and the interpreter that has its dependencies.

    Attributes:
        name: The name of its column.
        folder: The root of the source tree.
        python: The interpreter.
    """

    name: str
    folder: Path
    python: Path

    def check(self) -> None:
        """Exit unless the interpreter imports Treeclaim from this source tree."""
        code = "import treeclaim; print(treeclaim.__file__)"
        environment = {"PYTHONPATH": str(self.folder / "src")}
        result = subprocess.run(
            (self.python, "-c", code), check=False, env=environment, capture_output=True, text=True
        )
        if result.returncode or self.folder / "src" not in Path(result.stdout.strip()).parents:
            message = result.stderr.strip() or f"it imports {result.stdout.strip()}"
            raise SystemExit(f"{self.python} cannot run the checkout {self.folder}: {message}")


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a run.

    Attributes:
        pairs: The number of pairs for each case.
        rounds: Turns of ten searches in a measurement.
        steps: Steps of each load in a measurement.
        seconds: The time limit of a measurement.
        has_large: Whether worlds of more than 10,000 providers are measured.
    """

    pairs: int
    rounds: int
    steps: int
    seconds: float
    has_large: bool


QUICK = Extent(pairs=5, rounds=1, steps=50, seconds=0.4, has_large=False)
FULL = Extent(pairs=5, rounds=2, steps=100, seconds=1.0, has_large=True)


def checkout_of(folder: Path, python: Path | None) -> Checkout:
    """Return the other checkout; by default it has a virtual environment, or shares this one."""
    folder = folder.resolve()
    own = folder / ".venv" / "bin" / "python"
    chosen = python or (own if own.exists() else Path(sys.executable))
    return Checkout(OTHER, folder, chosen.absolute())


def compare(other: Checkout, database: str, extent: Extent, console: Console) -> bool:
    """Measure both checkouts, print a table, and return whether no row of this one is slower."""
    this = Checkout(THIS, Path(__file__).parents[1], Path(sys.executable))
    for checkout in (this, other):
        checkout.check()
    rows = Pairs()
    for make, measures in _plan(extent):
        world = make()
        console.print(f"Measuring {world.name}, {world.size} providers")
        with _endpoints(world, database, (this, other), rows) as endpoints:
            for measure in measures:
                for number in range(extent.pairs):
                    rows.add(measure(world, endpoints[:: -1 if number % 2 else 1]))
    _place(database, extent, (this, other), rows, console)
    return rows.show(console)


def _plan(extent: Extent) -> Iterator[tuple[Callable[[], World], list[Measure]]]:
    """Yield worlds with the measurements of each; those that need an untouched world come first."""
    most = (extent.rounds, extent.seconds)
    searches = partial(measure_searches, most=most)
    loads = partial(measure_loads, most=(extent.steps, extent.seconds))
    after_claims = partial(busy_cloud.after_claims, most=most)
    one_claim = partial(busy_cloud.one_claim, seconds=extent.seconds)
    contended = partial(busy_cloud.contended, seconds=extent.seconds)
    yield cases.busy_flat, [_explain, after_claims, one_claim, contended]
    yield cases.busy_nested, [after_claims]
    for make in cases.SHORT:
        yield make, [searches, loads]
    for make in cases.SHORT_ALONE[0 if extent.has_large else 1 :]:
        yield make, [searches]
    if extent.has_large:
        after_shapes = partial(busy_cloud.after_shapes, most=most)
        yield cases.BUSY_TREES[0], [after_claims, after_shapes]
        yield partial(nested, 10_000), [searches]


def _explain(world: World, endpoints: Sequence[Endpoint]) -> Iterator[Row]:
    """Explain ten requests that no provider can serve; each request names another amount."""
    for endpoint in endpoints:
        extension = Endpoint(endpoint.name, endpoint.url, EXTENDED)
        path = "/allocation_candidates/explain?nearest=50&resources=VCPU:{}"
        seconds = [extension.get(path.format(100_000 + number)).seconds for number in range(10)]
        yield Row(f"{world.name}: explain", endpoint.name, median_ms=1000 * median(seconds))


@contextmanager
def _endpoints(
    world: World, database: str, checkouts: Sequence[Checkout], rows: "Pairs"
) -> Iterator[list[Endpoint]]:
    """Run both checkouts on databases that hold the world."""
    with ExitStack() as stack:
        endpoints, first = [], []
        for checkout in checkouts:
            service = serving(checkout.name, world, database, start=partial(_start, checkout))
            endpoint, process = stack.enter_context(service)
            endpoints.append(endpoint)
            # One start says nothing of its duration; its memory is steady.
            first.append(replace(first_answer(endpoint, process, world), median_ms=None))
        rows.add(iter(first))
        yield endpoints


def _start(checkout: Checkout, database: str, folder: Path, workers: int) -> Any:
    _drop_own_tables(database)
    return peer.treeclaim_on(
        database, folder, workers, python=checkout.python, source=checkout.folder / "src"
    )


def _drop_own_tables(url: str) -> None:
    """Leave a database of Placement, so that each checkout makes the tables of its own release."""
    engine = sa.create_engine(url)
    tables = sa.MetaData()
    tables.reflect(engine, only=lambda name, _: name.startswith("treeclaim_"))
    tables.drop_all(engine)
    engine.dispose()


def _place(
    database: str,
    extent: Extent,
    checkouts: Sequence[Checkout],
    rows: "Pairs",
    console: Console,
) -> None:
    """Measure the calls of the extension that place and count consumers."""
    options = options_of(["--no-peer", "--rounds", "1", "--calls", str(extent.steps)])
    for make, kinds in CASES:
        world = make()
        wanted = [kind for kind in kinds if database == "sqlite" or kind not in SEARCHES]
        if not wanted or (world.size > 10_000 and not extent.has_large):
            continue
        console.print(f"Measuring {world.name}, {world.size} providers")
        with _endpoints(world, database, checkouts, rows) as endpoints:
            for kind in wanted:
                for number in range(extent.pairs):
                    for endpoint in endpoints[:: -1 if number % 2 else 1]:
                        result = kind(Running.at(world, endpoint, None), options)
                        rows.add((one.ours for one in result), endpoint.name)


class Pairs:
    """The rows of both checkouts, in pairs by case."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))

    def add(self, rows: Iterator[Row], endpoint: str | None = None) -> None:
        """Add measured rows.

        Args:
            rows: What was measured.
            endpoint: The checkout, where the rows do not name it.
        """
        for row in rows:
            self._rows[row.case][endpoint or row.endpoint].append(row)

    def show(self, console: Console) -> bool:
        """Print a row for each case; return whether none is slower in this checkout."""
        table = Table(title=f"{THIS} beside {OTHER}; above 1: slower", title_justify="left")
        for title in ("case", THIS, OTHER, "ratio", "of the pairs", ""):
            table.add_column(title)
        slower = 0
        for case, rows in self._rows.items():
            for figure, unit, is_cost in FIGURES:
                pairs = [
                    (ours, theirs)
                    for one, two in zip(rows[THIS], rows[OTHER], strict=True)
                    if (ours := figure(one)) and (theirs := figure(two))
                ]
                if not pairs:
                    continue
                ratios = sorted(a / b if is_cost else b / a for a, b in pairs)
                ratio = median(ratios)
                slower += ratio > SLOWER
                this, other = (median(list(some)) for some in zip(*pairs, strict=True))
                cells = (f"{this:,.1f} {unit}", f"{other:,.1f} {unit}", f"{ratio:.2f}")
                spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
                table.add_row(case, *cells, spread, "SLOWER" if ratio > SLOWER else "")
        console.print(table)
        console.print(f"{slower} rows are slower by more than {SLOWER - 1:.0%}.")
        return not slower


FIGURES: Sequence[tuple[Callable[[Row], float | None], str, bool]] = (
    (lambda row: row.median_ms, "ms", True),
    (lambda row: row.per_second, "a second", False),
    (lambda row: row.resident_bytes and row.resident_bytes / 2**20, "MiB", True),
)
"""The compared figures of a row: the figure, its unit, whether more of it is worse."""
