# SPDX-License-Identifier: Apache-2.0
"""`treeclaim place`: find places for several consumers, and claim them in one call."""

import argparse
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from treeclaim.cli.cloud.asking.question import add_question_options, query_of_options
from treeclaim.cli.cloud.asking.questions import ordered
from treeclaim.cli.cloud.changing.claims import add_from_hold, consumer_uuid
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.looking.tables import amounts_in_words
from treeclaim.cli.cloud.progress import shown_waiting
from treeclaim.cli.cloud.providers import DOMAINS_HELP, domains_of, with_uuids
from treeclaim.cli.output import positive, printer, say_document
from treeclaim.cli.printing import line
from treeclaim.client import CandidateQuery, Client
from treeclaim.client.requests.placing import (
    Placed,
    PlacedConsumer,
    PlacingRequest,
    PlacingRule,
)

_BAR = 30
UNKNOWN = "treeclaim"
"""The project and the user of new consumers and holds, unless --project and --user are given."""


def add_to(commands: Any) -> None:
    """Add the command."""
    place = commands.add_parser(
        "place",
        help="find places for consumers and claim them, all or nothing",
        description="Find places for consumers and claim them in one transaction. A call with "
        "--consumer may be repeated: consumers that are placed already stay where they are.",
    )
    add_placing_options(place)
    finish(place, run_place, json="print the server's document")


def add_placing_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say which consumers are placed, and the rules between their places."""
    add_question_options(command)
    command.add_argument("--count", type=positive, default=1, help="how many new consumers (1)")
    command.add_argument(
        "--consumer", nargs="+", metavar="UUID", help="for whom, instead of new ones"
    )
    add_order_option(command)
    command.add_argument(
        "--spread",
        metavar="DOMAINS",
        help=f"keep domains balanced: {DOMAINS_HELP}",
    )
    command.add_argument(
        "--most", type=positive, metavar="N", help="at most this many in one tree"
    )
    command.add_argument("--together", metavar="DOMAINS", help="all in one of these domains")
    command.add_argument("--partial", action="store_true", help="place those that have a place")
    command.add_argument("--dry-run", action="store_true", help="claim nothing")
    add_from_hold(command)
    for name, usual in (("project", UNKNOWN), ("user", UNKNOWN), ("consumer-type", "INSTANCE")):
        command.add_argument(f"--{name}", default=usual, help=f"{name} of the consumers ({usual})")


def add_order_option(command: argparse.ArgumentParser) -> None:
    """Add --order-by of a command that places."""
    command.add_argument(
        "--order-by", metavar="TERMS", help="which places come first, such as spread or pack"
    )


def run_place(options: argparse.Namespace) -> int:
    """Place consumers, and show where they are; the exit code is 1 where some have no place."""
    return shown(placed, options)


def shown(
    makes: Callable[[Client, CandidateQuery, argparse.Namespace], Placed],
    options: argparse.Namespace,
) -> int:
    """Have consumers or holds placed, show where they are, and return the exit code."""
    query = query_of_options(options)
    with client_of(options) as client:
        done = makes(client, query, options)
    if options.json:
        say_document(done.document)
    else:
        printer().print(placed_table(done, is_dry=options.dry_run))
    return 1 if done.unplaced else 0


def placed(client: Client, query: CandidateQuery, options: argparse.Namespace) -> Placed:
    """Place the consumers that a command's options name, and show progress.

    Raises:
        CommandError: for what cannot be read, or names no aggregate.
    """
    consumers = [consumer_uuid(text) for text in options.consumer or ()]
    consumers = consumers or [str(uuid.uuid4()) for _ in range(options.count)]
    rules = _rules(client, options)
    request = PlacingRequest(
        [with_uuids(client, ordered(query, options))],
        consumers,
        options.project,
        options.user,
        options.consumer_type,
        [consumer_uuid(text) for text in options.from_hold],
    )
    with shown_waiting(f"placing {len(consumers)}"):
        return client.place([request], rules, partial=options.partial, dry_run=options.dry_run)


def _rules(client: Client, options: argparse.Namespace) -> list[PlacingRule]:
    rules = []
    if options.most is not None:
        rules.append(PlacingRule(max_per_domain=options.most))
    if options.spread is not None:
        rules.append(PlacingRule(domains_of(client, options.spread), max_skew=1))
    if options.together is not None:
        rules.append(PlacingRule(domains_of(client, options.together), same_domain=True))
    return rules


def sums(placement: PlacedConsumer) -> dict[str, int]:
    """Return what a consumer takes of each resource class, all providers together."""
    amounts: Counter[str] = Counter()
    for resources in placement.allocations.values():
        amounts.update(resources)
    return dict(sorted(amounts.items()))


def placed_table(done: Placed, *, is_dry: bool) -> RenderableType:
    """Return a table of who is where, and a picture of how many are in each tree."""
    table = Table("consumer", "tree", "takes", box=None)
    for placement in done.placements:
        takes = amounts_in_words(sums(placement))
        note = " (was there)" if placement.held_before else ""
        table.add_row(placement.consumer, ", ".join(placement.roots) + note, takes)
    would = " would be" if is_dry else ""
    words = [line(f"{len(done.placements)}{would} placed")]
    if done.unplaced:
        words.append(line(", ", (f"no place for {len(done.unplaced)}", "red")))
    return Group(table, places_table(done), line("").join(words))


def places_table(done: Placed) -> Table:
    """Return a picture of how many are in each tree."""
    counts = Counter(root for placement in done.placements for root in placement.roots)
    bars = Table(title="Where they are", title_justify="left", box=None, show_header=False)
    most = max(counts.values(), default=1)
    for root, count in counts.most_common():
        bars.add_row(root, "█" * max(1, round(_BAR * count / most)), str(count))
    return bars
