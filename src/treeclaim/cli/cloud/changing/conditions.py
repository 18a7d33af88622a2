# SPDX-License-Identifier: Apache-2.0
"""`treeclaim condition set`, `unset` and `list`: stop new allocations (contract page 102)."""

import argparse
from collections.abc import Iterator
from typing import Any

from rich.table import Table

from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.providers import find_provider
from treeclaim.cli.output import printer, say, say_document
from treeclaim.client import Client
from treeclaim.client.reports import Reports
from treeclaim.model.extension.conditions import EFFECTS
from treeclaim.model.parts import CONDITIONS


def add_to(commands: Any) -> None:
    """Add the commands."""
    verbs = commands.add_parser("condition").add_subparsers(metavar="COMMAND", required=True)
    command = verbs.add_parser(
        "set",
        help="stop new allocations from a provider",
        description="Give a provider a condition, in place of the one with the same key. Everything "
        "below the provider has the condition too.",
    )
    add_condition_options(command)
    finish(command, run)
    command = verbs.add_parser(
        "unset",
        help="remove a condition from a provider",
        description="Remove a condition from a provider, so that new allocations are possible again.",
    )
    add_key_options(command)
    finish(command, run_unset)
    command = verbs.add_parser(
        "list",
        help="list the conditions of providers",
        description="List the conditions of providers.",
    )
    add_list_options(command)
    finish(command, run_list, json="print the server's document")


def add_condition_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say which condition a provider gets."""
    add_key_options(command)
    command.add_argument(
        "--effect",
        choices=list(EFFECTS),
        default=next(iter(EFFECTS)),
        help="no_new: no new allocations; leave: also, plans and audit name the consumers there",
    )
    command.add_argument("--reason", default="", help="a note for people")
    command.add_argument(
        "--until", metavar="TIME", help="when it ends, such as 2026-12-01T08:00:00Z; never"
    )
    command.add_argument(
        "--on-use",
        action="store_true",
        help="take effect with the first write that uses more there",
    )
    command.add_argument("--dry-run", action="store_true", help="only say what it would affect")


def add_key_options(command: argparse.ArgumentParser) -> None:
    """Add the arguments that name a provider and a condition."""
    command.add_argument("provider", metavar="PROVIDER", help="name or uuid")
    command.add_argument("key", metavar="KEY", help="key of the condition, such as CLEANING")


def add_list_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say whose conditions are listed."""
    command.add_argument(
        "--in-tree", metavar="PROVIDER", help="only in the tree of this provider, by name or uuid"
    )


def run(options: argparse.Namespace) -> int:
    """Set a condition, or print what it would affect."""
    with client_of(options) as client:
        affected = give(client, options)
    if affected is not None:
        say(
            f"would touch {affected['providers']} providers with {affected['consumers']} consumers"
        )
    return 0


def run_unset(options: argparse.Namespace) -> int:
    """Remove a condition."""
    with client_of(options) as client:
        take(client, options)
    return 0


def run_list(options: argparse.Namespace) -> int:
    """Show a table: a row for each condition."""
    with client_of(options) as client:
        rows = list(listed(client, options))
    if options.json:
        say_document({"providers": rows})
        return 0
    if not rows:
        say("No provider has a condition.")
        return 0
    table = Table("provider", "uuid", "condition", "effect", "until", "began", "reason")
    for row in rows:
        for key, shown in row[CONDITIONS.name].items():
            until, began = shown["until"] or "", "yes" if shown["began"] else "once it is used"
            words = (key, shown["effect"], until, began, shown["reason"])
            table.add_row(row["name"], row["uuid"], *words)
    printer().print(table)
    return 0


def give(client: Client, options: argparse.Namespace) -> dict[str, int] | None:
    """Set the condition that a command's options describe; with --dry-run return what that would affect.

    Raises:
        CommandError: if no provider has the name.
    """
    members = {
        "effect": options.effect,
        "reason": options.reason,
        "until": options.until,
        "on_use": options.on_use,
    }
    provider = find_provider(client, options.provider)["uuid"]
    return Reports(client).put_condition(provider, options.key, dry_run=options.dry_run, **members)


def take(client: Client, options: argparse.Namespace) -> None:
    """Remove a condition from a provider.

    Raises:
        CommandError: if no provider has the name.
    """
    provider = find_provider(client, options.provider)["uuid"]
    Reports(client).delete_condition(provider, options.key)


def listed(client: Client, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the providers with conditions that a command's options ask for.

    Raises:
        CommandError: if no provider has the name.
    """
    filters = {}
    if options.in_tree:
        filters["in_tree"] = find_provider(client, options.in_tree)["uuid"]
    yield from Reports(client).conditions(**filters)
