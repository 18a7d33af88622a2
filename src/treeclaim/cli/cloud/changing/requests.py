# SPDX-License-Identifier: Apache-2.0
"""`treeclaim requests`: store the requests of consumers, as Nova or a file gives them (page 100)."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from keystoneauth1.adapter import Adapter

from treeclaim.cli.cloud.changing.claims import consumer_uuid
from treeclaim.cli.cloud.compute import PAGE, compute_of, page
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.progress import Report, shown_progress
from treeclaim.cli.output import CommandError, complain, reason_of, say
from treeclaim.client import FlavorError
from treeclaim.client.reports import BATCH, Reports
from treeclaim.client.requests.flavors import flavor_of
from treeclaim.client.requests.server_flavors import server_flavor

_NOVA = "nova"

_MICROVERSION = "2.69"
"""Microversion of the compute API: servers come with the flavor that they were made of, and those are listed too
whose cell does not answer."""

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


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "requests",
        help="store the requests by which consumers were placed",
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
    finish(command, run)


def run(options: argparse.Namespace) -> int:
    """Read the requests, keep them, and tell what is not known; the exit status is 1 then."""
    with client_of(options) as client, shown_progress() as report:
        reports = Reports(client)
        if options.source == _NOVA:
            asked = _of_nova(compute_of(options, "--from nova"), report)
        else:
            asked = _of_file(Path(options.source))
        done, unknown = 0, 0
        given = list(asked.requests.items())
        for first in range(0, len(given), BATCH):
            batch = dict(given[first : first + BATCH])
            if not options.dry_run:
                _, missing = reports.keep_requests(batch)
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
    for server in _servers(compute):
        consumer = str(server["id"])
        try:
            asked.requests[consumer] = [_query(server)]
        except FlavorError as error:
            asked.untold[consumer] = str(error)
        done = len(asked.requests) + len(asked.untold)
        if done % PAGE == 0:
            report("reading servers", done, done)
    return asked


def _servers(compute: Adapter) -> Iterator[dict[str, Any]]:
    query = {"all_tenants": "True", "limit": str(PAGE)}
    while True:
        some, marker = page(
            compute, "/servers/detail", "servers", query, microversion=_MICROVERSION
        )
        yield from some
        if marker is None:
            return
        query["marker"] = marker


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


def _of_file(path: Path) -> _Found:
    """Read lines of consumers and their requests.

    Raises:
        CommandError: for a file, or a line, that cannot be read; nothing is kept then.
    """
    asked = _Found()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {reason_of(error)}") from error
    for number, line in enumerate(text.splitlines(), 1):
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
