# SPDX-License-Identifier: Apache-2.0
"""`treeclaim names`: names of aggregates, for people; shown, set, or taken from Nova or a file."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keystoneauth1.adapter import Adapter
from rich.table import Table

from treeclaim.cli.cloud.compute import compute_of, document
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.providers import is_uuid
from treeclaim.cli.output import CommandError, printer, reason_of, say, say_document
from treeclaim.client.aggregates import LONGEST_NAME, AggregateNames, name_aggregates

_NOVA = "nova"

_MICROVERSION = "2.41"
"""Microversion of the compute API: from there on aggregates are listed with their uuids, which are Placement's."""


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "names",
        help="names of aggregates: list, set, or take them from Nova",
        description="Without an option, list the names of aggregates. With some, set those that "
        "differ; may be repeated.",
    )
    command.add_argument(
        "--from",
        dest="source",
        metavar="nova|FILE",
        help="Nova's host aggregates and availability zones, or a JSON file {UUID: NAME or null}",
    )
    command.add_argument(
        "--set",
        nargs=2,
        action="append",
        default=[],
        metavar=("UUID", "NAME"),
        help="name an aggregate; an empty name removes it; may be repeated",
    )
    command.add_argument(
        "--dry-run", action="store_true", help="show what would be changed, and change nothing"
    )
    finish(command, run, json="print JSON")


def run(options: argparse.Namespace) -> int:
    """Change names, and say which; or list all."""
    wanted = dict(_wanted(options))
    for uuid in wanted:
        if not is_uuid(uuid):
            raise CommandError(f"{uuid!r} is not the uuid of an aggregate")
    with client_of(options) as client:
        names = AggregateNames.read(client)
        is_listing = options.source is None and not options.set
        changes = {} if is_listing else names.changes_to(wanted)
        if changes and not options.dry_run:
            name_aggregates(client, changes)
    shown = names.names if is_listing else changes
    if options.json:
        say_document({"names": dict(shown)})
        return 0
    if shown:
        table = Table("aggregate", "name")
        for uuid, name in shown.items():
            table.add_row(uuid, name or "(none)")
        printer().print(table)
    if is_listing:
        say(f"{len(shown)} aggregates have names")
    else:
        would = "would be " if options.dry_run else ""
        say(f"{len(changes)} names {would}changed, {len(wanted) - len(changes)} as they were")
    return 0


def _wanted(options: argparse.Namespace) -> Iterator[tuple[str, str | None]]:
    """Yield the names that a command's options ask for.

    Raises:
        CommandError: if they cannot be read.
    """
    if options.source == _NOVA:
        yield from _of_nova(compute_of(options, "--from nova"))
    elif options.source is not None:
        yield from _of_file(Path(options.source))
    for uuid, name in options.set:
        yield uuid, name or None


def _of_nova(compute: Adapter) -> Iterator[tuple[str, str]]:
    """Yield the names of Nova's host aggregates, with the zones that they make."""
    told = document(compute, "/os-aggregates", "aggregates", microversion=_MICROVERSION)
    for aggregate in told["aggregates"]:
        try:
            uuid, name = str(aggregate["uuid"]), str(aggregate["name"])
            zone = aggregate.get("availability_zone")
        except (KeyError, TypeError, AttributeError) as error:
            raise CommandError(
                "the compute API does not list the uuids of its aggregates"
            ) from error
        words = name if zone in (None, "", name) else f"{name}, zone {zone}"
        yield uuid, words[:LONGEST_NAME]


def _of_file(path: Path) -> Iterator[tuple[str, str | None]]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        items = list(told.items())
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise CommandError(f"{path}: {reason_of(error)}") from error
    for uuid, name in items:
        if not (name is None or isinstance(name, str)):
            raise CommandError(f"{path}: the name of {uuid} is not a text")
        yield uuid, name or None
