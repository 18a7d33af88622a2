# SPDX-License-Identifier: Apache-2.0
"""`treeclaim watch`: what changes, a line each, until it is interrupted."""

import argparse
from typing import Any

from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.providers import find_provider, is_uuid
from treeclaim.cli.output import say, say_document
from treeclaim.client.watching import Changes, watch
from treeclaim.model.parts import Part

_ORDER = [part.word for part in Part]


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser("watch", help="show changes as they happen")
    command.add_argument("--since", metavar="CURSOR", help="begin at a cursor instead of now")
    command.add_argument(
        "--in-tree",
        action="append",
        default=[],
        metavar="PROVIDER",
        help="only the tree of a provider, by name or uuid; may be repeated",
    )
    finish(command, run, json="print one JSON document per line")


def run(options: argparse.Namespace) -> int:
    """Show changes until interrupted."""
    with client_of(options) as client:
        roots = [
            name if is_uuid(name) else find_provider(client, name)["uuid"]
            for name in options.in_tree
        ]
        for changes in watch(client, options.since, in_tree=roots):
            if options.json:
                say_document(_document(changes), indent=None)
            say(*(() if options.json else _lines(changes)), flush=True)
    return 0


def _lines(changes: Changes) -> list[str]:
    lines = ["catalogue"] if changes.catalogue else []
    for change in changes.changes:
        what = ",".join(part for part in _ORDER if part in change.what)
        told = "deleted" if change.is_deleted else f"{change.generation} {what}"
        lines.append(f"{change.uuid} {told}")
    return lines


def _document(changes: Changes) -> dict[str, Any]:
    told = [
        {"uuid": change.uuid, "deleted": True}
        if change.is_deleted
        else {
            "uuid": change.uuid,
            "generation": change.generation,
            "what": [part for part in _ORDER if part in change.what],
        }
        for change in changes.changes
    ]
    return {"changes": told, "catalogue": changes.catalogue, "cursor": changes.cursor}
