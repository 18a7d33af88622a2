# SPDX-License-Identifier: Apache-2.0
"""`treeclaim requests` and `names`: what Nova or a file tells of consumers and aggregates, to be kept (page 100)."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from keystoneauth1.adapter import Adapter
from rich.table import Table

from treeclaim.cli.cloud.changing.claims import consumer_uuid
from treeclaim.cli.cloud.compute import NOVA, PAGE, SERVERS_VERSION, compute_of, document, listed
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.progress import Report, shown_progress
from treeclaim.cli.output import (
    CommandError,
    complain,
    object_of,
    printer,
    reason_of,
    say,
    say_document,
    text_in,
)
from treeclaim.client import FlavorError
from treeclaim.client.aggregates import LONGEST_NAME, AggregateNames
from treeclaim.client.reports import Reports, in_batches
from treeclaim.client.requests.flavors import flavor_of
from treeclaim.client.requests.server_flavors import server_flavor
from treeclaim.model.names import normalised_uuid

_MOST_TOLD = 10
"""Servers for which the reason why their request is unknown is printed one by one."""


@dataclass(slots=True)
class _Found:
    """What a source says.

    Attributes:
        requests: Queries by uuid of a consumer; None to forget them.
        untold: Why the request of others is not known, by uuid.
    """

    requests: dict[str, Sequence[str] | None] = field(default_factory=dict)
    untold: dict[str, str] = field(default_factory=dict)


_AGGREGATES_VERSION = "2.41"
"""Microversion of the compute API: from there on aggregates are listed with their uuids, which are Placement's."""


def add_to(commands: Any) -> None:
    """Add the commands."""
    command = commands.add_parser(
        "requests",
        description="Store the request of each consumer, so that it is known where else it could go. "
        "May be repeated, and continues where it was interrupted.",
    )
    command.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="nova|FILE",
        help='the flavors of Nova\'s servers, or a file of lines {"consumer": UUID, "request": [QUERY, …]}',
    )
    command.add_argument(
        "--dry-run", action="store_true", help="read everything, and store nothing"
    )
    finish(command, _keep_requests)
    command = commands.add_parser(
        "names",
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
    finish(command, _name, json="print JSON")


def _keep_requests(options: argparse.Namespace) -> int:
    """Read the requests, keep them, and tell what is not known; the exit status is 1 then."""
    with client_of(options) as client, shown_progress() as report:
        reports = Reports(client)
        if options.source == NOVA:
            asked = _requests_of_nova(compute_of(options, "--from nova"), report)
        else:
            asked = _requests_in(Path(options.source))
        done, unknown = 0, 0
        given = list(asked.requests.items())
        for batch in in_batches(given):
            if not options.dry_run:
                _, missing = reports.keep_requests(dict(batch))
                unknown += len(missing)
            done += len(batch)
            report("keeping requests", done, len(given))
    would = "would be " if options.dry_run else ""
    say(f"{done - unknown} requests {would}kept")
    if unknown:
        say(f"{unknown} are of consumers that hold nothing")
    for consumer, reason in list(asked.untold.items())[:_MOST_TOLD]:
        complain(f"{consumer}: {reason}")
    if asked.untold:
        complain(f"the requests of {len(asked.untold)} servers are not known")
    return 1 if asked.untold else 0


def _requests_of_nova(compute: Adapter, report: Report) -> _Found:
    asked = _Found()
    everywhere = {"all_tenants": "True"}
    servers = listed(
        compute, "/servers/detail", "servers", everywhere, microversion=SERVERS_VERSION
    )
    for server in servers:
        consumer = str(server["id"])
        try:
            asked.requests[consumer] = [_query(server)]
        except FlavorError as error:
            asked.untold[consumer] = str(error)
        done = len(asked.requests) + len(asked.untold)
        if done % PAGE == 0:
            report("reading servers", done, done)
    return asked


def _query(server: Mapping[str, Any]) -> str:
    """Return what Nova asks for a server.

    Raises:
        FlavorError: if that is not known.
    """
    flavor = server.get("flavor")
    if not isinstance(flavor, Mapping) or "vcpus" not in flavor:
        raise FlavorError("its cell does not answer")
    if "extra_specs" not in flavor:
        raise FlavorError("the policy of Nova hides the extra specs of its flavor")
    told = flavor_of(flavor, is_typed=False)
    if not server.get("image"):
        # It boots from a volume, which is its root disk.
        told = replace(told, disk=0)
    return str(server_flavor(told).query)


def _requests_in(path: Path) -> _Found:
    """Read lines of consumers and their requests.

    Raises:
        CommandError: for a file, or a line, that cannot be read; nothing is kept then.
    """
    asked = _Found()
    for number, line in enumerate(text_in(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            consumer, request = told["consumer"], told["request"]
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{path}, line {number}: {reason_of(error)}") from error
        if not (
            isinstance(consumer, str)
            and (request is None or _are_queries(request))
            and len(told) == len(("consumer", "request"))
        ):
            raise CommandError(
                f'{path}, line {number}: {{"consumer": UUID, "request": [QUERY, …]}} is expected'
            )
        asked.requests[consumer_uuid(consumer)] = request
    return asked


def _are_queries(request: Any) -> bool:
    return isinstance(request, list) and all(isinstance(query, str) for query in request)


def _name(options: argparse.Namespace) -> int:
    """Change names, and say which; or list all."""
    wanted = dict(_wanted(options))
    for uuid in wanted:
        if not normalised_uuid(uuid):
            raise CommandError(f"{uuid!r} is not the uuid of an aggregate")
    with client_of(options) as client:
        names = AggregateNames.read(client)
        is_listing = options.source is None and not options.set
        changes = {} if is_listing else names.changes_to(wanted)
        if changes and not options.dry_run:
            Reports(client).name_aggregates(changes)
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
    if options.source == NOVA:
        yield from _names_of_nova(compute_of(options, "--from nova"))
    elif options.source is not None:
        yield from _names_in(Path(options.source))
    for uuid, name in options.set:
        yield uuid, name or None


def _names_of_nova(compute: Adapter) -> Iterator[tuple[str, str]]:
    """Yield the names of Nova's host aggregates, with the zones that they make."""
    told = document(compute, "/os-aggregates", "aggregates", microversion=_AGGREGATES_VERSION)
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


def _names_in(path: Path) -> Iterator[tuple[str, str | None]]:
    for uuid, name in object_of(path, text_in(path)).items():
        if not (name is None or isinstance(name, str)):
            raise CommandError(f"{path}: the name of {uuid} is not a text")
        yield uuid, name or None
