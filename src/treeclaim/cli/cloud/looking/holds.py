# SPDX-License-Identifier: Apache-2.0
"""`treeclaim holds`: what is kept for claims to come, where, for whom and until when."""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.looking.tables import amounts_in_words
from treeclaim.cli.cloud.providers import find_provider
from treeclaim.cli.output import printer, say, say_document
from treeclaim.client import Client
from treeclaim.client.reports import Reports

_COLUMNS = ("hold", "project", "has", "drawn", "until", "returns", "note")
_FILTERS = ("project_id", "drawable_by", "until_before")


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser("holds", help="list holds, with what is drawn from them")
    add_list_options(command)
    finish(command, run, json="show what the server tells")


def add_list_options(command: argparse.ArgumentParser) -> None:
    """Add the filters."""
    command.add_argument("--project", dest="project_id", metavar="ID", help="of this project")
    command.add_argument("--drawable-by", metavar="ID", help="from which this project may draw")
    command.add_argument(
        "--until-before", metavar="TIME", help="that end before, such as 2026-12-01T08:00:00Z"
    )
    command.add_argument(
        "--in-tree", metavar="PROVIDER", help="in the tree of this provider, by name or uuid"
    )


def run(options: argparse.Namespace) -> int:
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
    return _sums(share["resources"] for share in hold["allocations"].values())


def drawn(hold: Mapping[str, Any]) -> dict[str, int]:
    """Return what is drawn from it, likewise."""
    return _sums(hold["hold"]["drawn"].values())


def _sums(parts: Any) -> dict[str, int]:
    amounts: Counter[str] = Counter()
    for part in parts:
        amounts.update(part)
    return dict(sorted(amounts.items()))
