# SPDX-License-Identifier: Apache-2.0
"""`treeclaim replay`: arrivals in a cloud in memory, by several orders (contract page 101, section 6)."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from treeclaim.cli.output import (
    CommandError,
    complain,
    is_watched,
    positive,
    printer,
    reason_of,
    say_document,
)
from treeclaim.client.topology import Topology, TopologyError, read_topology
from treeclaim.model.extension.mixes import Mix
from treeclaim.replay.cloud import forest_of
from treeclaim.replay.files import USUAL, Events, ReplayError, mix_of, read_events
from treeclaim.replay.openb import read_nodes, read_pods
from treeclaim.replay.replay import Plan, plotted, replayed

_DESCRIPTION = f"""\
Place arrivals one after the other, as a service would, in a cloud from a topology file, in memory.
EVENTS has a line of JSON for each event: {{"at": 17.0, "place": "id", "query": "resources=VCPU:4"}} or
{{"at": 99.0, "release": "id"}}. Several --order are shown beside each other; the order "{USUAL}" is the
default one. With --from openb the files are nodes and pods of a public trace of GPU clusters.
"""
_MOST_SHARE = 100
_MOST_SEEDS = 1_000
_MOST_ORDERS = 64
_DIGITS = 3
"""Digits of --until behind the point."""


def add_to(commands: Any) -> None:
    """Add the command."""
    replay = commands.add_parser(
        "replay",
        help="place the arrivals of a file in a cloud in memory, with several orders",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.add_argument("topology", type=Path, help="the cloud, as for `treeclaim load`; or nodes")
    replay.add_argument(
        "events", type=Path, help="arrivals and releases, as lines of JSON; or pods"
    )
    replay.add_argument(
        "--from",
        dest="form",
        choices=["openb"],
        help="the files are a trace: CSV of nodes and pods",
    )
    replay.add_argument(
        "--order",
        action="append",
        default=[],
        metavar="TERMS",
        help="order_by of all arrivals, instead of their own; may be repeated",
    )
    replay.add_argument(
        "--seeds", type=positive, metavar="N", help="shuffle the arrivals this many times"
    )
    replay.add_argument(
        "--until",
        type=_share,
        metavar="SHARE",
        help="then draw arrivals until this share of the capacity of --of is requested, such as 1.3",
    )
    replay.add_argument(
        "--of", metavar="CLASS", help="the resource class for which requested amounts are counted"
    )
    replay.add_argument(
        "--mix",
        type=Path,
        metavar="FILE",
        help="file with a mix for the term keep, named like the file",
    )
    replay.add_argument("--plot", type=Path, metavar="FILE", help="write a picture, as SVG")
    replay.add_argument("--json", action="store_true", help="print the numbers as JSON")
    replay.set_defaults(run=run)


def _share(text: str) -> int:
    """Read a share, in thousandths."""
    whole, _, part = text.partition(".")
    is_number = whole.isascii() and whole.isdigit() and len(whole) <= _DIGITS
    is_number &= not part or (part.isascii() and part.isdigit() and len(part) <= _DIGITS)
    thousandths = int(whole) * 1_000 + int(part.ljust(_DIGITS, "0") or 0) if is_number else 0
    if not 0 < thousandths <= _MOST_SHARE * 1_000:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a share, such as 1.3")
    return thousandths


def run(options: argparse.Namespace) -> int:
    """Replay, and show a table."""
    if options.until is not None and options.of is None:
        raise CommandError("--until needs --of, the resource class that is counted")
    if (options.seeds or 1) > _MOST_SEEDS or len(options.order) > _MOST_ORDERS:
        raise CommandError(f"at most {_MOST_SEEDS} seeds and {_MOST_ORDERS} orders")
    try:
        topology, events, mix = _files(options)
        plan = Plan(
            forest_of(topology),
            events,
            mix,
            options.order,
            options.seeds or int(options.until is not None),
            options.until,
            options.of,
        )
        outcomes = [outcome.document() for outcome in replayed(plan, _tell)]
    except TopologyError as error:
        raise CommandError(*error.lines) from error
    except ReplayError as error:
        raise CommandError(str(error)) from error
    if options.plot is not None:
        _write(options.plot, plotted(outcomes))
    if options.json:
        say_document({"orders": outcomes})
    else:
        printer().print(_tables(outcomes, mix))
    return 0


def _files(options: argparse.Namespace) -> tuple[Topology, Events, Mix | None]:
    mix = None if options.mix is None else mix_of(options.mix)
    if options.form is None:
        return read_topology(options.topology), read_events(options.events), mix
    events, pods = read_pods(options.events)
    return read_nodes(options.topology), events, mix or pods


def _tell(order: str, seed: int) -> None:
    if is_watched():
        complain(f"{order}, seed {seed} …")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CommandError(f"{file}: it cannot be written: {reason_of(error)}") from error


def _tables(outcomes: Sequence[dict[str, Any]], mix: Mix | None) -> RenderableType:
    summary = Table("order", "unplaced", "empty trees", "placements/s", box=None)
    for order in outcomes:
        told = (order["unplaced"], order["empty_trees"], order["placements_per_second"])
        summary.add_row(order["order"], *(_number(value, 1) for value in told))
    parts: list[RenderableType] = [summary]
    points = [point for order in outcomes for point in order["points"]]
    for what in ("allocated", "stranded") if mix is not None else ("allocated",):
        names = sorted({name for point in points for name in point[what]})
        parts += [_shares(outcomes, what, name) for name in names]
    return Group(*parts)


def _shares(outcomes: Sequence[dict[str, Any]], what: str, name: str) -> Table:
    table = Table(title=f"{what}, {name}, % of capacity", title_justify="left", box=None)
    table.add_column("asked %", justify="right")
    for order in outcomes:
        table.add_column(order["order"], justify="right")
    asked = sorted({point["asked"] for order in outcomes for point in order["points"]})
    for share in asked:
        cells = []
        for order in outcomes:
            values = [p[what].get(name) for p in order["points"] if p["asked"] == share]
            cells.append(_number(values[0], 100) if values and values[0] else "")
        table.add_row(f"{100 * share:.0f}", *cells)
    return table


def _number(value: dict[str, float | None], times: float) -> str:
    mean, spread = value["mean"] or 0.0, value["spread"]
    digits = 0 if times == 1 else 2
    shown = f"{times * mean:.{digits}f}"
    return shown if spread is None else f"{shown} ± {times * spread:.2f}"
