# SPDX-License-Identifier: Apache-2.0
"""`treeclaim usage`: what a project uses."""

import argparse
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.output import printer, say, say_document
from treeclaim.client.versions import Need
from treeclaim.model.microversions import Feature

_COUNT = "consumer_count"


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser("usage", help="show what a project uses")
    command.add_argument("--project", required=True, metavar="ID", help="id of the project")
    command.add_argument("--user", metavar="ID", help="only what belongs to a user")
    finish(command, run, json="show the server's document")


def run(options: argparse.Namespace) -> int:
    """Show a table: a row for each class, by type of consumer."""
    filters = {"project_id": options.project} | ({"user_id": options.user} if options.user else {})
    with client_of(options) as client:
        client.versions.require(Need("usage by project", Feature.USAGES))
        answer = client.get("/usages", **filters)
        is_typed = client.versions.has_feature(Feature.CONSUMER_TYPES)
    if options.json:
        say_document(answer)
        return 0
    usages: Mapping[str, Any] = answer["usages"] if is_typed else {"": answer["usages"]}
    if not any(usages.values()):
        say(f"Project {options.project} uses nothing.")
        return 0
    table = Table(
        "type", "consumers", "class", title=f"Project {options.project}", title_justify="left"
    )
    table.add_column("used", justify="right")
    for kind, classes in usages.items():
        count = str(classes.get(_COUNT, ""))
        for name, used in classes.items():
            if name != _COUNT:
                table.add_row(kind, count, name, str(used))
    printer().print(table)
    return 0
