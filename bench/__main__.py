# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`: measure Treeclaim, and a peer beside it."""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
import psutil
from rich.console import Console

from bench import servers
from bench.endpoint import Endpoint
from bench.measure import Row, measure_claims, measure_searches
from bench.report import markdown, show
from bench.worlds import ALONE, SHORT, World

OURS = "treeclaim"
PEER = "openstack-placement"


def main() -> int:
    """Measure what the options ask for."""
    options = _options()
    console = Console()
    rows: list[Row] = []
    peer = None if options.no_peer else PEER
    if options.versus:
        peer = options.versus
    for make in SHORT:
        world = make()
        if options.only not in world.name:
            continue
        console.print(f"Measuring {world.name}")
        with _endpoints(world, options, console) as endpoints:
            rows += measure_searches(world, endpoints, options.rounds)
            if world.claim:
                rows += measure_claims(world, endpoints, options.claims)
        _write(rows, options.json)
    for make in ALONE:
        world = make()
        if options.only not in world.name:
            continue
        console.print(f"Measuring {world.name}, Treeclaim alone")
        with ExitStack() as stack:
            folder = Path(stack.enter_context(servers.new_folder()))
            ours = _ours(stack, folder, world, console)
            rows += measure_searches(world, [ours], options.rounds)
        _write(rows, options.json)
    show(console, rows, OURS, peer)
    if options.markdown is not None:
        options.markdown.write_text(markdown(rows, OURS, peer))
    return 0


def _write(rows: list[Row], file: Path | None) -> None:
    """Write what is known so far, so that a run that is stopped leaves something."""
    if file is not None:
        document = [one.as_json() for one in rows]
        file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="few rounds (the default)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of ten answers per case")
    parser.add_argument("--claims", type=int, default=200, help="claims per case")
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
    return parser.parse_args()


@contextmanager
def _endpoints(
    world: World, options: argparse.Namespace, console: Console
) -> Iterator[list[Endpoint]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(servers.new_folder()))
        endpoints = [_ours(stack, folder, world, console)]
        if options.versus:
            endpoints.append(Endpoint(options.versus, options.versus))
            endpoints[-1].load(world)
        elif not options.no_peer:
            endpoints.append(_peer(stack, folder, console))
        yield endpoints


def _ours(stack: ExitStack, folder: Path, world: World, console: Console) -> Endpoint:
    url, process = stack.enter_context(servers.treeclaim(folder))
    endpoint = Endpoint(OURS, url)
    endpoint.load(world)
    console.print(f"  {len(world.providers)} providers loaded")
    _show_memory(OURS, process, console)
    return endpoint


def _peer(stack: ExitStack, folder: Path, console: Console) -> Endpoint:
    """Start the peer on a copy of our database, which it understands as its own."""
    try:
        servers.peer_environment()
    except subprocess.CalledProcessError:
        raise SystemExit(f"{PEER} cannot be installed here; use --no-peer") from None
    url, process = stack.enter_context(servers.openstack_placement(folder))
    _show_memory(PEER, process, console)
    return Endpoint(PEER, url)


def _show_memory(name: str, process: psutil.Process, console: Console) -> None:
    console.print(f"  {name}: {servers.memory_of(process) / 1e6:.0f} MB resident")


if __name__ == "__main__":
    sys.exit(main())
