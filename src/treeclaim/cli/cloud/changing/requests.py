# SPDX-License-Identifier: Apache-2.0
"""`treeclaim requests`: keep what consumers were placed by, as Nova or a file tells it (page 100)."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from keystoneauth1.adapter import Adapter

from treeclaim.cli.cloud.changing.claims import consumer_uuid
from treeclaim.cli.cloud.compute import NOVA, PAGE, SERVERS_VERSION, compute_of, listed
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.progress import Report, shown_progress
from treeclaim.cli.output import CommandError, complain, reason_of, say, text_in
from treeclaim.client import FlavorError
from treeclaim.client.reports import Reports, in_batches
from treeclaim.client.requests.flavors import flavor_of
from treeclaim.client.requests.server_flavors import server_flavor

_MOST_TOLD = 10
"""Servers of which is said one by one why their request is not known."""


@dataclass(slots=True)
class _Found:
    """What a source tells.

    Attributes:
        requests: Queries by uuid of a consumer; None to forget them.
        untold: Why the request of others is not known, by uuid.
    """

    requests: dict[str, Sequence[str] | None] = field(default_factory=dict)
    untold: dict[str, str] = field(default_factory=dict)


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "requests",
        help="keep what consumers were placed by",
        description="Keep the request of each consumer, so that is known where else it may live. "
        "May be repeated, and goes on where it was interrupted.",
    )
    command.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="nova|FILE",
        help='the flavors of Nova\'s servers, or lines of {"consumer": UUID, "request": [QUERY, …]}',
    )
    command.add_argument("--dry-run", action="store_true", help="read all, and keep nothing")
    finish(command, run)


def run(options: argparse.Namespace) -> int:
    """Read the requests, keep them, and tell what is not known; the exit status is 1 then."""
    with client_of(options) as client, shown_progress() as report:
        reports = Reports(client)
        if options.source == NOVA:
            asked = _of_nova(compute_of(options, "--from nova"), report)
        else:
            asked = _of_file(Path(options.source))
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


def _of_nova(compute: Adapter, report: Report) -> _Found:
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
        # It boots from a volume, and its root disk is there.
        told = replace(told, disk=0)
    return str(server_flavor(told).query)


def _of_file(path: Path) -> _Found:
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
