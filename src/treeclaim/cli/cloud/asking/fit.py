# SPDX-License-Identifier: Apache-2.0
"""`treeclaim fit`: how many consumers of a flavor fit, now and if nothing were allocated."""

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keystoneauth1.adapter import Adapter
from rich.console import Group, RenderableType
from rich.table import Table

from treeclaim.cli.cloud.asking.question import (
    add_question_options,
    flavors_in,
    is_asked,
    query_of_options,
    tell_unasked,
)
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.providers import DOMAINS_HELP, domains_of, with_uuids
from treeclaim.cli.output import CommandError, positive, printer, say_document
from treeclaim.client import CandidateQuery, Client, Flavor, FlavorError
from treeclaim.client.aggregates import NO_NAMES, AggregateNames
from treeclaim.client.requests.placing import Capacity
from treeclaim.client.requests.server_flavors import server_flavor

_BAR = 30
_PARTS = 20
"""Parts shown of each request if nobody says how many: a screen."""


def add_to(commands: Any) -> None:
    """Add the command."""
    fit = commands.add_parser("fit", help="count how many consumers of a request still fit")
    add_fit_options(fit)
    finish(fit, run_fit, json="print the numbers as JSON")


def add_fit_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say what is to be counted, and where."""
    add_question_options(command)
    command.add_argument(
        "--flavors",
        type=Path,
        metavar="FILE",
        help="file of flavors in YAML or JSON: vcpus, ram, disk and extra_specs by name",
    )
    command.add_argument(
        "--by", metavar="DOMAINS", help=f"also count in each of these: {DOMAINS_HELP}"
    )
    command.add_argument(
        "--limit", type=positive, default=_PARTS, help=f"most of these to show ({_PARTS})"
    )


def run_fit(options: argparse.Namespace) -> int:
    """Count, and show a table with bars."""
    requests = requests_of(options)
    with client_of(options) as client:
        capacities = counted(client, requests, options)
        names = AggregateNames.read(client) if options.by else NO_NAMES
    if options.json:
        documents = {name: dataclasses.asdict(capacity) for name, capacity in capacities.items()}
        say_document(documents)
    else:
        printer().print(capacity_table(capacities, names))
    return 0


def requests_of(
    options: argparse.Namespace, compute: Callable[[], Adapter] | None = None
) -> dict[str, CandidateQuery]:
    """Return the questions of a command by name: those of a file, and the one that is typed.

    Raises:
        CommandError: for what cannot be read, or has no meaning.
    """
    requests = _flavors(options.flavors) if options.flavors else {}
    if is_asked(options) or not requests:
        name = options.server_flavor or "request"
        requests[name] = query_of_options(options, compute)
    return requests


def counted(
    client: Client, requests: Mapping[str, CandidateQuery], options: argparse.Namespace
) -> dict[str, Capacity]:
    """Return how many consumers of each request fit.

    Raises:
        CommandError: if there are no such parts.
    """
    domains = None if options.by is None else domains_of(client, options.by)
    asked = {name: with_uuids(client, query) for name, query in requests.items()}
    return client.capacity(asked, domains, options.limit)


def _flavors(file: Path) -> dict[str, CandidateQuery]:
    """Read several flavors."""
    return {name: _query(f"{file}: {name}", flavor) for name, flavor in flavors_in(file).items()}


def _query(where: str, flavor: Flavor) -> CandidateQuery:
    try:
        asked = server_flavor(flavor)
    except FlavorError as error:
        raise CommandError(f"{where}: {error}") from error
    if not any(name.startswith("resources") for name, _ in asked.query.parameters):
        raise CommandError(f"{where}: it requests nothing")
    tell_unasked(asked)
    return asked.query


def capacity_table(
    capacities: Mapping[str, Capacity], names: AggregateNames = NO_NAMES
) -> RenderableType:
    """Return a table of how many fit, with bars, and of the parts where they were asked for."""
    table = Table("request", "fits", "when empty", "", box=None)
    parts: list[RenderableType] = [table]
    for name, capacity in capacities.items():
        filled = round(_BAR * capacity.fits / max(capacity.when_empty, capacity.fits, 1))
        fits = (
            str(capacity.fits)
            if capacity.fits == capacity.at_most
            else f"{capacity.fits} to {capacity.at_most}"
        )
        note = "" if capacity.is_complete else " (counting took too long)"
        bar = "█" * filled + "░" * (_BAR - filled)
        table.add_row(name, fits, str(capacity.when_empty), bar + note)
        if capacity.domains:
            parts.append(_domains_of(name, capacity, names))
    return Group(*parts)


def _domains_of(name: str, capacity: Capacity, names: AggregateNames) -> Table:
    table = Table(title=f"{name} by part", title_justify="left", box=None, show_header=False)
    most = capacity.domains[0][1]
    for domain, count in capacity.domains:
        table.add_row(names.shown(domain), "█" * max(1, round(_BAR * count / most)), str(count))
    return table
