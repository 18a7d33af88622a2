# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.replay CLOUD EVENTS --of CLASS`: compare orders on arrivals of one's own, or of a public trace."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.replay.cloud import forest_of
from bench.replay.openb import GPU, read_nodes, read_pods
from bench.replay.simulation import Plan, replay
from bench.replay.trace_files import ReplayError, read_events, read_mix
from treeclaim.client.topology import TopologyError, read_topology

_DESCRIPTION = """\
Place arrivals in a cloud in memory, and print what each order allocates. EVENTS has a line of JSON for each
event: {"at": 17.0, "place": "ID", "query": "resources=VCPU:4"} or {"at": 99.0, "release": "ID"}.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, and print a table or a document."""
    parser = argparse.ArgumentParser("python -m bench.replay", description=_DESCRIPTION)
    parser.add_argument("cloud", type=Path, help="a topology, as for treeclaim load; or nodes")
    parser.add_argument("events", type=Path, help="arrivals and releases; or pods")
    parser.add_argument("--from", dest="form", choices=["openb"], help="the form of both files")
    parser.add_argument("--of", metavar="CLASS", help=f"the class to count ({GPU} of a trace)")
    parser.add_argument("--order", action="append", metavar="TERMS", help="may be repeated")
    parser.add_argument("--seeds", type=int, default=0, help="shuffle the arrivals so often")
    parser.add_argument(
        "--until", type=float, metavar="SHARE", help="draw until this share of --of is requested"
    )
    parser.add_argument("--mix", type=Path, metavar="FILE", help="a mix, named like the file")
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON")
    options = parser.parse_args(arguments)
    if options.form is None and options.of is None:
        parser.error("--of is missing: the resource class to count")
    try:
        orders = replay(_read_plan(options), options.order or [None])
    except (ReplayError, TopologyError) as error:
        print(*getattr(error, "lines", [error]), sep="\n", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps({"orders": orders}, indent=1))
    else:
        print("\n".join(table(orders, options.of or GPU)))
    return 0


def _read_plan(options: argparse.Namespace) -> Plan:
    mix = None if options.mix is None else read_mix(options.mix)
    if options.form is None:
        topology, events = read_topology(options.cloud), read_events(options.events)
    else:
        topology = read_nodes(options.cloud)
        events, pods = read_pods(options.events)
        mix = mix or pods
    seeds = options.seeds or int(options.until is not None)
    return Plan(forest_of(topology), events, mix, options.of or GPU, seeds, options.until)


def table(orders: Sequence[Mapping[str, Any]], counted: str) -> list[str]:
    """Return the lines of a table in Markdown: a row for each order."""
    lines = [
        f"| order | allocated of {counted}, % | stranded, % | unplaced | empty trees | placed a second |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for order in orders:
        cells = [_words(order[kind].get(counted), 100) for kind in ("allocated", "stranded")]
        cells += [
            _words(order[name]) for name in ("unplaced", "empty_trees", "placements_per_second")
        ]
        lines.append(f"| {order['order']} | {' | '.join(cells)} |")
    return lines


def _words(value: Mapping[str, float] | None, factor: int = 1) -> str:
    if value is None:
        return ""
    mean, spread = factor * value["mean"], value["spread"]
    digits = 0 if factor == 1 else 2
    return f"{mean:,.{digits}f}" + ("" if spread is None else f" ± {factor * spread:.2f}")


if __name__ == "__main__":
    sys.exit(main())
