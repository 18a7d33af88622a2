# SPDX-License-Identifier: Apache-2.0
"""`request import`: stored requests of consumers, from Nova or a file (contract page 100)."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from treeclaim.cli.command import CloudAction
from treeclaim.cli.consumers.allocations import parse_consumer
from treeclaim.cli.nova import NOVA, Nova
from treeclaim.cli.output import (
    CommandError,
    convert_failures,
    format_count,
    print_lines,
    read_text,
    warn,
)
from treeclaim.cli.printing import show_progress
from treeclaim.client import CandidateQuery, Client, FlavorError
from treeclaim.client.session import Progress, split_batches
from treeclaim.model.flavors import parse_flavor
from treeclaim.model.server_flavors import translate_flavor

_MOST_REASONS = 10
"""Servers without a known request that are reported one by one."""

_Requests = dict[str, Sequence[str] | None]
"""Queries by consumer uuid; None to delete a stored request."""


class ImportRequests(CloudAction):
    """Store the request of each consumer, which plans and survival need.

    May be interrupted and repeated. Exit status: 0 if all requests are known, 1 if not.
    """

    example = "nova --dry-run"

    arguments = """
        source:nova|FILE  the flavors of Nova's servers, or a file of lines {"consumer": UUID, "request": [QUERY, …]}
        --dry-run         read everything, and store nothing
    """

    def act(self, client: Client, options: argparse.Namespace) -> int:
        with show_progress() as report:
            client.require_extension("storing requests")
            if options.source == NOVA:
                requests, failures = _read_nova_requests(self.connect_nova(options, NOVA), report)
            else:
                requests, failures = _read_request_file(Path(options.source)), {}
            processed_count, unknown_count = 0, 0
            for batch in split_batches(list(requests.items())):
                if not options.dry_run:
                    body = {"requests": dict(batch)}
                    unknown_count += len(
                        client.call("POST", "/treeclaim/requests", body)["unknown"]
                    )
                processed_count += len(batch)
                report("storing requests", processed_count, len(requests))
        would = "would be " if options.dry_run else ""
        print_lines(f"{processed_count - unknown_count} requests {would}stored")
        if unknown_count:
            print_lines(f"{unknown_count} are of consumers without allocations")
        for consumer, reason in list(failures.items())[:_MOST_REASONS]:
            warn(f"{consumer}: {reason}")
        if failures:
            warn(f"the requests of {format_count(len(failures), 'server')} are not known")
        return 1 if failures else 0


def _read_nova_requests(nova: Nova, report: Progress) -> tuple[_Requests, dict[str, str]]:
    """Return the known requests of servers, and the reasons for unknown ones, by uuid."""
    requests: _Requests = {}
    failures: dict[str, str] = {}
    for read_count, server in enumerate(nova.list_servers(), 1):
        consumer = str(server["id"])
        try:
            requests[consumer] = [_build_server_query(server)]
        except FlavorError as error:
            failures[consumer] = str(error)
        report("reading servers", read_count, read_count)
    return requests, failures


def _build_server_query(server: Mapping[str, Any]) -> str:
    """Return the query that Nova sent for a server; raise FlavorError if its flavor is unknown."""
    flavor = server.get("flavor")
    if not isinstance(flavor, Mapping) or "vcpus" not in flavor:
        raise FlavorError("its cell does not answer")
    if "extra_specs" not in flavor:
        raise FlavorError("the policy of Nova hides the extra specs of its flavor")
    size = parse_flavor(flavor, is_typed=False)
    if not server.get("image"):
        # A server without an image boots from a volume, which is its root disk.
        size = replace(size, disk=0)
    return str(CandidateQuery(translate_flavor(size).parameters))


def _read_request_file(path: Path) -> _Requests:
    requests: _Requests = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        with convert_failures(f"{path}, line {number}", (ValueError, KeyError, TypeError)):
            entry = json.loads(line)
            consumer, request = entry["consumer"], entry["request"]
        queries = [] if request is None else request
        are_texts = isinstance(queries, list) and all(isinstance(each, str) for each in queries)
        if not (
            are_texts and isinstance(consumer, str) and entry.keys() == {"consumer", "request"}
        ):
            raise CommandError(
                f'{path}, line {number}: {{"consumer": UUID, "request": [QUERY, …]}} is expected'
            )
        requests[parse_consumer(consumer)] = request
    return requests
