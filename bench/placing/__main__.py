# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.placing`: measure placing, and a peer beside it."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from rich.console import Console

from bench.clients.endpoint import OURS, PEER
from bench.measuring.loading import serving
from bench.placing.cases import CASES, SEARCHES, Running
from bench.placing.comparison import Comparison, show
from tests.clouds import World
from tests.databases import KINDS


@contextmanager
def running_on(world: World, options: argparse.Namespace) -> Iterator[Running]:
    """Run the services on a world for a block."""
    with ExitStack() as stack:
        endpoints = [
            stack.enter_context(serving(name, world, options.database, workers=options.workers))[0]
            for name in (OURS, *(() if options.no_peer else (PEER,)))
        ]
        yield Running.at(world, endpoints[0], endpoints[1] if endpoints[1:] else None)


def measure(options: argparse.Namespace, console: Console) -> list[Comparison]:
    """Measure all cases, or those that a database matters for."""
    comparisons: list[Comparison] = []
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
                    comparisons.append(comparison)
    return comparisons


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
    return parser.parse_args(arguments)


def main() -> int:
    """Measure what the options ask for."""
    options = options_of()
    console = Console(width=180)
    comparisons = measure(options, console)
    return 0 if show(comparisons, console) else 1


if __name__ == "__main__":
    sys.exit(main())
