# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`: measure Treeclaim, and a peer beside it."""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import orjson
import psutil
from rich.console import Console

from bench import cases, servers, thresholds
from bench.bulk import write_world
from bench.endpoint import Endpoint
from bench.http_loading import load_world
from bench.measure import Row, measure_loads, measure_searches
from bench.plots import draw
from bench.report import markdown, show, value_of
from bench.worlds import World, nested
from tests.databases import KINDS, server_of

OURS = "treeclaim"
PEER = "openstack-placement"


def main() -> int:
    """Measure what the options ask for."""
    bench = Bench(_options())
    return 0 if bench.run() else 1


class Bench:
    """One run: worlds, endpoints, rows."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._console = Console()
        self._rows: list[Row] = []
        self._peer = None if options.no_peer else options.versus or PEER

    def run(self) -> bool:
        """Measure, and report; return whether no threshold is missed."""
        options = self._options
        compared, alone = (
            (cases.FULL, cases.FULL_ALONE) if options.full else (cases.SHORT, cases.SHORT_ALONE)
        )
        for make in compared:
            self._measure(make, self._peer)
        for make in alone:
            self._measure(make, None)
        if options.full:
            for trees in cases.SCALING:
                self._measure(partial(_scaling, trees), None)
        known = thresholds.read()
        is_met = show(self._console, self._rows, OURS, self._peer, known)
        if options.observe:
            values = (value_of(one, self._rows, OURS, self._peer) for one in known)
            thresholds.write(list(map(thresholds.observing, known, values)))
        if options.markdown is not None:
            options.markdown.write_text(markdown(self._rows, OURS, self._peer))
        if options.plots is not None:
            draw(self._rows, OURS, self._peer, options.plots)
        return is_met

    def _measure(self, make: Callable[[], World], peer: str | None) -> None:
        world = make()
        if self._options.only not in world.name:
            return
        self._console.print(f"Measuring {world.name}, {len(world.providers)} providers")
        with self._endpoints(world, peer) as endpoints:
            for row in measure_searches(world, endpoints, self._options.rounds):
                self._keep(row)
            if peer is not None and not self._options.searches_only:
                for row in measure_loads(world, endpoints, self._options.steps):
                    self._keep(row)

    def _keep(self, row: Row) -> None:
        """Write what is known so far, so that a run that is stopped leaves something."""
        self._rows.append(row)
        if self._options.json is not None:
            document = [one.as_json() for one in self._rows]
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
        folder = Path(stack.enter_context(servers.new_folder()))
        server = server_of(self._options.database)
        database = stack.enter_context(server.database(folder))
        write_world(database, world)
        start = servers.treeclaim_on if name == OURS else servers.openstack_placement_on
        try:
            running = start(database, folder, self._options.workers)
            url, process = stack.enter_context(running)
        except subprocess.CalledProcessError:
            raise SystemExit(f"{PEER} cannot be installed here; use --no-peer") from None
        self._first_answer(name, url, process)
        return Endpoint(name, url)

    def _first_answer(self, name: str, url: str, process: psutil.Process) -> None:
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
        first = httpx.get(
            f"{url}/allocation_candidates?resources=VCPU:1&limit=1", headers=headers, timeout=600
        )
        memory = servers.memory_of(process) / 1e6
        self._console.print(
            f"  {name}: first answer after {first.elapsed.total_seconds():.2f} s, "
            f"{memory:.0f} MB resident"
        )


def _scaling(trees: int) -> World:
    """Return a world for the plot of sizes."""
    return replace(nested(trees), name=f"scaling {trees} x 7", limits=(10, 1000))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all worlds; takes about an hour")
    parser.add_argument("--database", choices=KINDS, default="sqlite", help="both use")
    parser.add_argument("--workers", type=int, default=1, help="processes of each service")
    parser.add_argument("--rounds", type=int, default=3, help="turns of ten answers per case")
    parser.add_argument("--steps", type=int, default=100, help="steps of each load")
    parser.add_argument("--searches-only", action="store_true", help="no claims, no other reads")
    parser.add_argument("--only", metavar="TEXT", default="", help="worlds with this in the name")
    parser.add_argument("--no-peer", action="store_true", help="measure Treeclaim alone")
    parser.add_argument(
        "--versus",
        metavar="URL",
        help="an endpoint to compare with instead of an openstack-placement started here; the "
        "worlds are loaded into it, so it should be empty",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a table to a file")
    parser.add_argument(
        "--observe", action="store_true", help="note the figures in bench/thresholds.yaml"
    )
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw SVG plots")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
