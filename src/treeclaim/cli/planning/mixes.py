# SPDX-License-Identifier: Apache-2.0
"""`mix set`, `learn`, `show`, `list` and `delete` (contract page 101, section 2)."""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from treeclaim.cli.command import CloudAction, CloudLister, Result
from treeclaim.cli.output import CommandError, parse_object, read_text, warn
from treeclaim.cli.printing import show_progress
from treeclaim.cli.query_arguments import format_query
from treeclaim.client import CandidateQuery, Client, ClientError
from treeclaim.client.session import escape_url
from treeclaim.model.extension.planning import MIX_NAME, MOST_REQUESTS, MOST_WEIGHT
from treeclaim.model.query.parameters import split_name

_NOT_OF_A_MIX = ("order_by", "preferred", "limit", "from_holds")
"""Parameters that rank candidates instead of selecting them."""

_DEADLINE = "treeclaim.deadline"
_STDIN = "-"
_LONGEST_NAME = 100

_NAME = f"NAME  name of the mix: {MIX_NAME}"


class SetMix(CloudAction):
    """Create or replace a mix."""

    example = "weekday mix.json"

    arguments = f"""
        {_NAME}
        FILE  a document {{"requests": {{NAME: {{"query": QUERY, "weight": N}}, …}}}}; - for standard input
    """

    def act(self, client: Client, options: argparse.Namespace) -> None:
        file = options.file
        document = parse_object(file, sys.stdin.read() if str(file) == _STDIN else read_text(file))
        try:
            client.call("PUT", _make_path(options.name), document)
        except ClientError as error:
            if error.status != HTTPStatus.BAD_REQUEST:
                raise
            raise CommandError(f"{file}: {error}") from error


class DeleteMix(CloudAction):
    """Delete a mix."""

    example = "weekday"

    arguments = _NAME

    def act(self, client: Client, options: argparse.Namespace) -> None:
        client.call("DELETE", _make_path(options.name))


class ShowMix(CloudLister):
    """Show the requests of a mix."""

    example = "weekday -f json"

    arguments = _NAME

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        return _make_result(client.get(_make_path(options.name)))


class ListMixes(CloudLister):
    """List all mixes, with the number and the total weight of their requests."""

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        del options
        mixes = client.get("/treeclaim/mixes")["mixes"]
        rows = [
            (
                name,
                len(mix["requests"]),
                sum(request["weight"] for request in mix["requests"].values()),
            )
            for name, mix in mixes.items()
        ]
        notes = () if rows else ["There is no mix."]
        return Result(("Mix", "Requests", "Weight"), rows, {"mixes": mixes}, notes=notes)


class LearnMix(CloudLister):
    """Create or replace a mix of the stored requests of consumers.

    The mix has the 64 most frequent requests, each with its frequency as weight.
    """

    example = "weekday --since 2026-12-01T08:00:00Z"

    arguments = f"""
        {_NAME}
        --since TIME  only consumers created since then, such as 2026-12-01T08:00:00Z
        --dry-run     show the mix without storing it
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        requests = _learn_requests(client, options.since)
        if not options.dry_run:
            client.call("PUT", _make_path(options.name), {"requests": requests})
        return _make_result({"requests": requests})


def _make_path(name: str) -> str:
    return f"/treeclaim/mixes/{escape_url(name)}"


def _make_result(mix: Mapping[str, Any]) -> Result:
    rows = [
        (name, request["weight"], format_query(request["query"]))
        for name, request in mix["requests"].items()
    ]
    return Result(("Request", "Weight", "Query"), rows, mix)


def _learn_requests(client: Client, since: str | None) -> dict[str, dict[str, Any]]:
    filters = {"created_since": since} if since else {}
    counts: Counter[str] = Counter()
    with show_progress() as report:
        consumers = client.rows(
            "/treeclaim/allocations", "consumers", include="requests", **filters
        )
        for read_count, consumer in enumerate(consumers, 1):
            if consumer["request"]:
                counts[remove_preferences(consumer["request"][0])] += 1
            report("reading consumers", read_count, read_count)
    requests: dict[str, dict[str, Any]] = {}
    # Ordered by text, equally frequent requests make the same mix each time.
    for query, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if len(requests) == MOST_REQUESTS:
            break
        if _is_accepted(client, query):
            name = f"{len(requests) + 1}: {_format_resources(query)}"[:_LONGEST_NAME]
            requests[name] = {"query": query, "weight": min(count, MOST_WEIGHT)}
    if not requests:
        raise CommandError("no consumer has a stored request")
    return requests


def remove_preferences(query: str) -> str:
    """Return a query without its ranking parameters."""
    return str(CandidateQuery.parsed(query).without(*_NOT_OF_A_MIX))


def _format_resources(query: str) -> str:
    pairs = parse_qsl(query)
    return " ".join(value for name, value in pairs if split_name(name)[0] == "resources")


def _is_accepted(client: Client, query: str) -> bool:
    """Return whether the service accepts a query; warn if a name in it no longer exists."""
    try:
        client.call("POST", "/treeclaim/candidates", {"alternatives": [f"{query}&limit=1"]})
    except ClientError as error:
        if error.status != HTTPStatus.BAD_REQUEST or error.code == _DEADLINE:
            raise
        warn(f"left out: {query}: {error}")
        return False
    return True
