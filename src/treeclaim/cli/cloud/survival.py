# SPDX-License-Identifier: Apache-2.0
"""`treeclaim survival`: which hosts, or racks, may fail."""

import argparse
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from treeclaim.cli.cloud.asking.explanation import funnel_table
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.moves import add_given_option, given_of
from treeclaim.cli.cloud.providers import DOMAINS_HELP, domains_of
from treeclaim.cli.output import failing_apart, positive, printer, say_document
from treeclaim.client import Client
from treeclaim.client.planning import Plans
from treeclaim.client.requests.placing import TREES

ALL_SURVIVE, NOT_ALL = 0, 1
"""Exit codes."""

STATUS_HELP = (
    "Exit status: 0 if all survive, 1 if not (or not all were checked), 2 if the command failed."
)


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "survival",
        description=STATUS_HELP,
    )
    add_survival_options(command)
    finish(command, run, json="print the server's document")


def add_survival_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say which failures are checked."""
    command.add_argument("--domains", default=TREES, help=f"what fails: {DOMAINS_HELP}")
    command.add_argument(
        "--consumer-type",
        action="append",
        metavar="TYPE",
        help="place only consumers of this type again ('unknown' for none); may be repeated; default all",
    )
    command.add_argument(
        "--from-hold",
        action="append",
        metavar="UUID",
        help="a hold that keeps room for such failures; may be repeated",
    )
    command.add_argument("--all", action="store_true", help="also show those that survive")
    command.add_argument(
        "--explain", action="store_true", help="say why the first consumer finds no place"
    )
    command.add_argument("--limit", type=positive, default=100, help="most domains to show (100)")
    add_given_option(command)


def run(options: argparse.Namespace) -> int:
    """Ask, and show a table."""
    with failing_apart(), client_of(options) as client:
        answer = asked(client, options)
    if options.json:
        say_document(answer)
    else:
        _show(answer)
    return status_of(answer)


def asked(client: Client, options: argparse.Namespace) -> dict[str, Any]:
    """Return the server's document.

    Raises:
        CommandError: for domains that do not exist, and files that cannot be read.
    """
    return Plans(client).survival(
        domains_of(client, options.domains),
        consumer_types=options.consumer_type,
        from_holds=options.from_hold,
        shows_all=options.all,
        explain=options.explain or None,
        limit=options.limit,
        given=given_of(options),
    )


def status_of(answer: Mapping[str, Any]) -> int:
    """Return the exit code."""
    is_safe = answer["complete"] and answer["survive"] == answer["of"]
    return ALL_SURVIVE if is_safe else NOT_ALL


def summary_of(answer: Mapping[str, Any]) -> str:
    """Return a line about the whole: the domains that survive, that fail, and that are unknown."""
    late = "" if answer["complete"] else "; the time was up before all were checked"
    fail, unknown = (
        f", {answer[outcome]} {outcome}" if answer[outcome] else ""
        for outcome in ("fail", "unknown")
    )
    return f"{answer['survive']} of {answer['of']} survive{fail}{unknown}{late}"


def verdict_of(domain: Mapping[str, Any]) -> str:
    """Return the outcome of a failure in words."""
    if domain["survives"]:
        return "survives"
    if domain["survives"] is None:
        return "unknown"
    certainty = "" if domain["proven"] else " in this order"
    return f"{domain['unplaced']} without a place{certainty}"


def _show(answer: Mapping[str, Any]) -> None:
    table = Table(
        "domain", "consumers", "without request", "verdict", "first without a place", box=None
    )
    for domain in answer["domains"]:
        table.add_row(
            domain["name"] or domain["uuid"],
            str(domain["consumers"]),
            str(domain["without_request"]),
            verdict_of(domain),
            domain["first_unplaced"] or "",
        )
    if answer["domains"]:
        printer().print(table)
    for domain in answer["domains"]:
        if "explanation" in domain:
            printer().print(funnel_table(domain["explanation"]))
    printer().print(summary_of(answer))
