# SPDX-License-Identifier: Apache-2.0
"""`treeclaim mix`: what the cloud expects, by name (contract page 101, section 2)."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from rich.table import Table

from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.progress import shown_progress
from treeclaim.cli.output import (
    CommandError,
    complain,
    object_of,
    printer,
    say,
    say_document,
    text_in,
)
from treeclaim.client import Client, ClientError
from treeclaim.client.reports import Reports
from treeclaim.client.transport import query_string
from treeclaim.model.extension.mixes import MOST_REQUESTS, MOST_WEIGHT, NAME
from treeclaim.model.query_parameters import split_name

LONGEST = 256 * 1024
"""Bytes of a mix, as the service has them at most."""

_NOT_OF_A_MIX = {"order_by", "preferred", "limit", "from_holds"}
"""Parameters that say which candidate is best, not what is needed."""

_DEADLINE = "treeclaim.deadline"
_STDIN = "-"
_LONGEST_NAME = 100
_JSON = "print it as JSON"


def add_to(commands: Any) -> None:
    """Add the command."""
    mix = commands.add_parser("mix")
    deeds = mix.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listed = deeds.add_parser("list", help="list all mixes")
    finish(listed, _list, json=_JSON)
    put = deeds.add_parser("put", help="make or replace a mix")
    add_put_options(put)
    finish(put, _put)
    show = deeds.add_parser("show", help="show a mix")
    add_name(show)
    finish(show, _show, json=_JSON)
    delete = deeds.add_parser("delete", help="delete a mix")
    add_name(delete)
    finish(delete, _delete)
    learn = deeds.add_parser(
        "learn",
        help="make a mix from the stored requests of consumers",
        description="Make or replace a mix of the kept requests of all consumers: the 64 most "
        "frequent ones, each with the weight how often.",
    )
    add_learn_options(learn)
    learn.add_argument("--dry-run", action="store_true", help="show the mix without storing it")
    finish(learn, _learn, json=_JSON)


def add_name(command: argparse.ArgumentParser) -> None:
    """Add the argument that names a mix."""
    command.add_argument("name", metavar="NAME", help=f"of the mix: {NAME}")


def add_put_options(command: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that puts a mix."""
    add_name(command)
    command.add_argument(
        "file",
        metavar="FILE",
        help='a document {"requests": {NAME: {"query": QUERY, "weight": N}, …}}; - for standard input',
    )


def add_learn_options(command: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that learns a mix."""
    add_name(command)
    command.add_argument(
        "--since",
        metavar="TIME",
        help="only from consumers created since then, such as 2026-12-01T08:00:00Z",
    )


def _put(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        put(client, options)
    return 0


def put(client: Client, options: argparse.Namespace) -> None:
    """Put the mix of a command's options.

    Raises:
        CommandError: if there is no such document.
        ClientError: if the endpoint refuses, or does not answer.
    """
    file = Path(options.file)
    document = object_of(file, sys.stdin.read() if options.file == _STDIN else text_in(file))
    requests = document.get("requests")
    if len(document) != 1 or not (
        isinstance(requests, dict) and all(isinstance(each, dict) for each in requests.values())
    ):
        expected = '{"requests": {NAME: {"query": …, "weight": …}}} is expected'
        raise CommandError(f"{file}: {expected}")
    Reports(client).put_mix(options.name, requests)


def _show(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        _say_mix(Reports(client).mix(options.name), options)
    return 0


def _list(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        mixes = Reports(client).mixes()
    if options.json:
        say_document({"mixes": mixes})
        return 0
    if not mixes:
        say("There is no mix.")
        return 0
    table = Table("mix", "requests", "weight of all")
    for name, mix in mixes.items():
        table.add_row(name, str(len(mix["requests"])), str(weight_of(mix)))
    printer().print(table)
    return 0


def weight_of(mix: Mapping[str, Any]) -> int:
    """Return the weights of a mix added up."""
    return int(sum(request["weight"] for request in mix["requests"].values()))


def _say_mix(mix: Mapping[str, Any], options: argparse.Namespace) -> None:
    if options.json:
        say_document(mix)
        return
    table = Table()
    for column in ("request", "weight", "query"):
        table.add_column(column, overflow="fold")
    for name, request in mix["requests"].items():
        table.add_row(name, str(request["weight"]), request["query"])
    printer().print(table)


def _delete(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        Reports(client).delete_mix(options.name)
    return 0


def _learn(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        requests = learned(client, options)
        if not options.dry_run:
            Reports(client).put_mix(options.name, requests)
    _say_mix({"requests": requests}, options)
    return 0


def learned(client: Client, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the requests of a mix made from those of consumers.

    Args:
        client: The client that talks to the server.
        options: The options of the command: `since`.

    Raises:
        CommandError: if nothing is kept.
        ClientError: if the endpoint refuses, or does not answer.
    """
    filters = {"created_since": options.since} if options.since else {}
    counts: Counter[str] = Counter()
    with shown_progress() as report:
        consumers = Reports(client).consumers(include="requests", **filters)
        for done, consumer in enumerate(consumers, 1):
            if consumer["request"]:
                counts[plain(consumer["request"][0])] += 1
            report("reading consumers", done, done)
    named: dict[str, dict[str, Any]] = {}
    # Equally frequent ones are ordered by text, so that learning twice gives the same mix.
    for query, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if len(named) == MOST_REQUESTS:
            break
        if _can_be_asked(client, query):
            name = f"{len(named) + 1}: {_amounts(query)}"[:_LONGEST_NAME]
            named[name] = {"query": query, "weight": min(count, MOST_WEIGHT)}
            if len(json.dumps({"requests": named})) > LONGEST:
                del named[name]
                complain(f"left out, as the mix would be too long: {query[:_LONGEST_NAME]}…")
    if not named:
        raise CommandError("no consumer has a stored request")
    return named


def plain(query: str) -> str:
    """Return a query without what says which candidate is best."""
    return query_string(
        [
            (name, value)
            for name, value in parse_qsl(query, keep_blank_values=True)
            if split_name(name)[0] not in _NOT_OF_A_MIX
        ],
        ":,!*",
    )


def _amounts(query: str) -> str:
    pairs: Iterable[tuple[str, str]] = parse_qsl(query)
    return " ".join(value for name, value in pairs if split_name(name)[0] == "resources")


def _can_be_asked(client: Client, query: str) -> bool:
    """Tell whether all names in a query still exist, and say so if they do not."""
    try:
        client.alternatives([f"{query}&limit=1"])
    except ClientError as error:
        if error.status != HTTPStatus.BAD_REQUEST or error.code == _DEADLINE:
            raise
        complain(f"left out: {query}: {error}")
        return False
    return True
