# SPDX-License-Identifier: Apache-2.0
"""`treeclaim hold create` and `list`: reserve capacity for later claims (contract page 100)."""

import argparse
import uuid
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rich.table import Table

from treeclaim.cli.cloud.asking.question import add_question_options
from treeclaim.cli.cloud.asking.questions import ordered
from treeclaim.cli.cloud.changing.claims import UNKNOWN, add_order_option, added_up, shown
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.progress import shown_waiting
from treeclaim.cli.cloud.providers import find_provider, with_uuids
from treeclaim.cli.output import positive, printer, say, say_document
from treeclaim.cli.printing import amounts_in_words
from treeclaim.client import CandidateQuery, Client, Hold, Placed, PlacingRequest
from treeclaim.client.reports import Reports

_COLUMNS = ("hold", "project", "has", "drawn", "until", "returns", "note")

_FILTERS = ("project_id", "drawable_by", "until_before")


def add_to(commands: Any) -> None:
    """Add the commands."""
    verbs = commands.add_parser("hold").add_subparsers(metavar="COMMAND", required=True)
    create = verbs.add_parser(
        "create",
        help="reserve capacity for later claims",
        description="Find room and keep it in holds, all or nothing. Claims draw from them with "
        "--from-hold; 'treeclaim release' ends a hold.",
    )
    add_hold_options(create)
    finish(create, partial(shown, held), json="print the server's document")
    listing = verbs.add_parser(
        "list",
        help="list holds, with what is drawn from them",
        description="List holds with their terms, and what consumers have drawn from them.",
    )
    add_list_options(listing)
    finish(listing, _list, json="print the server's document")


def add_hold_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say how much is kept, and on what terms."""
    add_question_options(command)
    command.add_argument(
        "--amount", type=positive, default=1, help="how many holds, each for one such claim (1)"
    )
    add_order_option(command)
    command.add_argument(
        "--until", metavar="TIME", help="when they end, such as 2026-12-01T08:00:00Z; never"
    )
    command.add_argument(
        "--returns",
        action="store_true",
        help="what was drawn returns to the hold when it is released",
    )
    command.add_argument(
        "--drawable-by",
        action="append",
        default=[],
        metavar="PROJECT",
        help="another project than --project whose consumers may draw; may be repeated",
    )
    command.add_argument("--note", help="a note for people")
    command.add_argument("--dry-run", action="store_true", help="do not create the holds")
    for name in ("project", "user"):
        command.add_argument(f"--{name}", default=UNKNOWN, help=f"{name} of the holds ({UNKNOWN})")


def held(client: Client, query: CandidateQuery, options: argparse.Namespace) -> Placed:
    """Make the holds that a command's options describe, and show progress."""
    request = PlacingRequest(
        [with_uuids(client, ordered(query, options))],
        [str(uuid.uuid4()) for _ in range(options.amount)],
        options.project,
        options.user,
        hold=Hold(options.until, options.returns, options.drawable_by, options.note),
    )
    with shown_waiting(f"finding room for {options.amount}"):
        return client.place([request], dry_run=options.dry_run)


def add_list_options(command: argparse.ArgumentParser) -> None:
    """Add the filters."""
    command.add_argument(
        "--project", dest="project_id", metavar="ID", help="only those of this project"
    )
    command.add_argument(
        "--drawable-by", metavar="ID", help="only those from which this project may draw"
    )
    command.add_argument(
        "--until-before",
        metavar="TIME",
        help="only those that end before, such as 2026-12-01T08:00:00Z",
    )
    command.add_argument(
        "--in-tree",
        metavar="PROVIDER",
        help="only those in the tree of this provider, by name or uuid",
    )


def _list(options: argparse.Namespace) -> int:
    """Show a table: a row for each hold."""
    with client_of(options) as client:
        holds = list(listed(client, options))
    if options.json:
        say_document({"holds": holds})
        return 0
    if not holds:
        say("Nothing is held.")
        return 0
    table = Table(*_COLUMNS, title=f"{len(holds)} holds", title_justify="left")
    for hold in holds:
        terms = hold["hold"]
        table.add_row(
            hold["uuid"],
            ", ".join([hold["project_id"], *terms["projects"]]),
            amounts_in_words(has(hold)),
            amounts_in_words(drawn(hold)),
            terms["until"] or "",
            "yes" if terms["returns"] else "",
            terms["note"] or "",
        )
    printer().print(table)
    return 0


def listed(client: Client, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the holds that a command's options ask for.

    Raises:
        CommandError: if no provider has the name.
    """
    filters = {name: getattr(options, name) for name in _FILTERS if getattr(options, name)}
    if options.in_tree:
        filters["in_tree"] = find_provider(client, options.in_tree)["uuid"]
    yield from Reports(client).holds(**filters)


def has(hold: Mapping[str, Any]) -> dict[str, int]:
    """Return what a hold has of each resource class, all providers together."""
    return added_up(share["resources"] for share in hold["allocations"].values())


def drawn(hold: Mapping[str, Any]) -> dict[str, int]:
    """Return what is drawn from it, likewise."""
    return added_up(hold["hold"]["drawn"].values())
