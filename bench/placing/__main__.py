# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.placing`: measure placing, and a peer beside it."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.placing.cases import CASES, SEARCHES, Running
from bench.placing.comparison import OURS, PEER, Comparison, markdown, show
from tests import peer
from tests.clouds import World
from tests.clouds.bulk import write_world
from tests.databases import KINDS, server_of


@contextmanager
def running_on(world: World, options: argparse.Namespace) -> Iterator[Running]:
    """Run the services on a world for a block."""
    starts: dict[str, Callable[..., Any]] = {OURS: peer.treeclaim_on}
    if not options.no_peer:
        starts[PEER] = peer.openstack_placement_on
    urls: dict[str, str] = {}
    with ExitStack() as stack:
        for name, start in starts.items():
            folder = Path(stack.enter_context(peer.new_folder()))
            database = stack.enter_context(server_of(options.database).database(folder))
            write_world(database, world)
            urls[name], _ = stack.enter_context(start(database, folder, options.workers))
        yield Running(world, urls[OURS], urls.get(PEER))


def measure(options: argparse.Namespace, console: Console) -> list[Comparison]:
    """Measure all cases, or those that a database matters for."""
    found: list[Comparison] = []
    for make, wanted in CASES:
        kinds = [name for name in wanted if options.database == "sqlite" or name not in SEARCHES]
        world = make()
        if not kinds or options.only not in world.name:
            continue
        console.print(f"Measuring {world.name}")
        with running_on(world, options) as running:
            for kind in kinds:
                for comparison in kind(running, options):
                    # A run that is stopped leaves what it knows.
                    console.print("  " + comparison.in_words())
                    found.append(comparison)
    return found


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a run, by default those of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.placing", description=__doc__)
    parser.add_argument("--database", choices=KINDS, default="sqlite", help="both use")
    parser.add_argument("--workers", type=int, default=1, help="processes of each service")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each case")
    parser.add_argument("--calls", type=int, default=320, help="placements, or claims, in a turn")
    parser.add_argument("--sample", type=int, default=8, help="consumers that the peer places")
    parser.add_argument("--only", metavar="TEXT", default="", help="worlds with this in the name")
    parser.add_argument("--no-peer", action="store_true", help="measure Treeclaim alone")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a table to a file")
    return parser.parse_args(arguments)


def main() -> int:
    """Measure what the options ask for."""
    options = options_of()
    console = Console(width=180)
    found = measure(options, console)
    if options.markdown is not None:
        options.markdown.write_text(markdown(found))
    return 0 if show(found, console) else 1


if __name__ == "__main__":
    sys.exit(main())
