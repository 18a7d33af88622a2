# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`: measure Treeclaim, and a peer beside it."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import orjson
from rich.console import Console

from bench import cases, placing, seeing
from bench.clients.endpoint import OURS, PEER, Endpoint
from bench.measuring import busy_cloud, fixed_rate
from bench.measuring.loading import bytes_each, first_answer, serving
from bench.measuring.row import Comparison, Row
from bench.measuring.searches import measure_loads, measure_searches
from bench.reporting import thresholds
from bench.reporting.report import show
from tests.clouds import World
from tests.clouds.http_loading import load_world
from tests.databases import KINDS

BUSY, QUIET, BULK, WATCHERS, PLACING = PARTS = ("busy", "quiet", "bulk", "watchers", "placing")
"""Parts of a run."""

Measure = Callable[[World, Sequence[Endpoint]], Iterator[Row]]
"""Measures something of a world at one or two endpoints, ours first."""


def main() -> int:
    """Measure what the options ask for."""
    bench = Bench(options_of())
    return 0 if bench.run() else 1


class Bench:
    """A run: worlds, endpoints, rows."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        # Wide enough for the tables where the output is no terminal.
        self._console = Console(width=None if sys.stdout.isatty() else 180)
        self._rows: list[Row] = []
        self._smallest: dict[str, Row] = {}
        self._peer = None if options.no_peer else options.versus or PEER

    def measure(self) -> list[Comparison]:
        """Measure what the options ask for, and return all figures."""
        parts = self._options.part
        placed: list[Comparison] = []
        if BUSY in parts:
            self._busy_cloud()
        if QUIET in parts:
            self._quiet_cloud()
        if BULK in parts:
            self._keep(*seeing.bulk(peer=self._peer == PEER))
        if WATCHERS in parts:
            self._keep(*seeing.watchers())
        if PLACING in parts:
            placed += placing.measure(self._options, self._console)
        others = {row.case: row for row in self._rows if row.endpoint == self._peer}
        ours = {row.case: row for row in reversed(self._rows) if row.endpoint == OURS}
        cases_in_order = dict.fromkeys(row.case for row in self._rows if row.case in ours)
        return [*(Comparison(ours[case], others.get(case)) for case in cases_in_order), *placed]

    def run(self) -> bool:
        """Measure, and report; return whether no threshold is missed."""
        options = self._options
        known = [
            threshold
            for threshold in thresholds.read()
            if threshold.database == options.database and not options.delay
        ]
        return show(self._console, self.measure(), known)

    def _busy_cloud(self) -> None:
        """Measure what one client notices of what others write: the first of all tables."""
        rounds, seconds = self._options.rounds, self._seconds
        after_claims = partial(busy_cloud.after_claims, most=(rounds, seconds))
        after_shapes = partial(busy_cloud.after_shapes, most=(rounds, seconds))
        self._measure(
            cases.busy_flat,
            self._peer,
            after_claims,
            partial(busy_cloud.one_claim, seconds=seconds),
            partial(busy_cloud.contended, seconds=seconds),
        )
        # On new databases: what others have claimed before is not what this is about.
        self._measure(
            cases.busy_flat, self._peer, partial(fixed_rate.at_fixed_rate, seconds=2 * seconds)
        )
        self._measure(cases.busy_nested, self._peer, after_claims)
        for make in cases.BUSY_TREES if self._options.large else cases.BUSY_TREES[:1]:
            self._measure(make, None, after_claims, after_shapes)

    def _quiet_cloud(self) -> None:
        options = self._options
        searches = partial(measure_searches, most=(options.rounds, self._seconds))
        loads = partial(measure_loads, most=(options.steps, self._seconds))
        with_loads = self._peer is not None and not options.searches_only
        for make in (*cases.SHORT, *(cases.LARGE if options.large else ())):
            self._measure(make, self._peer, *([searches, loads] if with_loads else [searches]))
        for make in (*cases.SHORT_ALONE, *(cases.LARGE_ALONE if options.large else ())):
            self._measure(make, None, searches)

    @property
    def _seconds(self) -> float:
        """Return how long one figure of one service may take."""
        return 8.0 if self._options.large else 2.0

    def _measure(self, make: Callable[[], World], peer: str | None, *measures: Measure) -> None:
        world = make()
        if self._options.only not in world.name:
            return
        self._console.print(f"Measuring {world.name}, {world.size} providers")
        with self._endpoints(world, peer) as endpoints:
            for measure in measures:
                for row in measure(world, endpoints):
                    self._keep(row)

    def _keep(self, *rows: Row) -> None:
        """Write what is known so far, so that a run that is stopped leaves something."""
        self._rows += rows
        if self._options.json is not None:
            document = [asdict(row) for row in self._rows]
            self._options.json.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))

    @contextmanager
    def _endpoints(self, world: World, peer: str | None) -> Iterator[list[Endpoint]]:
        with ExitStack() as stack:
            endpoints = [self._started(stack, OURS, world)]
            if peer == PEER:
                endpoints.append(self._started(stack, PEER, world))
            elif peer is not None:
                load_world(peer, world)
                endpoints.append(Endpoint(peer, peer))
            yield endpoints

    def _started(self, stack: ExitStack, name: str, world: World) -> Endpoint:
        """Start a server on a database of its own that holds the world."""
        options = self._options
        endpoint, process = stack.enter_context(
            serving(
                name,
                world,
                options.database,
                workers=options.workers,
                delay=options.delay / 1000,
            )
        )
        row = first_answer(endpoint, process, world)
        smallest = self._smallest.setdefault(name, row)
        row = replace(row, bytes_each=bytes_each(row, smallest))
        self._keep(row)
        memory = f"{(row.resident_bytes or 0) / 1e6:.0f} MB"
        self._console.print(f"  {name}: first answer after {row.median_ms:.0f} ms, {memory}")
        return endpoint


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a run, by default those of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--large", action="store_true", help="worlds of up to a million too")
    parser.add_argument("--database", choices=KINDS, default="sqlite", help="both use")
    parser.add_argument("--workers", type=int, default=1, help="processes of each service")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each case")
    parser.add_argument("--steps", type=int, default=100, help="steps of each load")
    parser.add_argument("--searches-only", action="store_true", help="no claims, no other reads")
    parser.add_argument("--calls", type=int, default=320, help="placements, or claims, in a turn")
    parser.add_argument("--sample", type=int, default=8, help="consumers that the peer places")
    parser.add_argument(
        "--part",
        nargs="+",
        choices=PARTS,
        default=[BUSY, QUIET],
        help="what is measured (default: busy quiet)",
    )
    parser.add_argument(
        "--delay",
        type=float,
        default=0.0,
        metavar="MS",
        help="milliseconds that each round trip to the database takes longer; thresholds are not judged",
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="worlds with this in the name")
    parser.add_argument("--no-peer", action="store_true", help="measure Treeclaim alone")
    parser.add_argument(
        "--versus",
        metavar="URL",
        help="an endpoint to compare with instead of an openstack-placement started here; the "
        "worlds are loaded into it, so it should be empty",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
