# SPDX-License-Identifier: Apache-2.0
"""Resolves names of providers and domains, and reads the names of providers.

Domains are trees or aggregates. An aggregate is given by uuid, by name, or by its word in a topology file, from
which the uuid is made (`aggregate_uuid`). Words therefore work even if the service has no names.
"""

import argparse
import re
from collections.abc import Iterable
from typing import Any

from treeclaim.cli.output import CommandError
from treeclaim.client import CandidateQuery, Client
from treeclaim.client.aggregates import read_aggregate_names
from treeclaim.client.session import run_parallel
from treeclaim.client.states import read_rows
from treeclaim.model.names import aggregate_uuid, normalised_uuid
from treeclaim.model.query.parameters import Grammar, find_parameter

Row = dict[str, Any]
"""A provider in a list of GET /resource_providers."""

TREES = "tree"
"""The domains that are trees."""

Domains = str | list[str]
"""`TREES`, or uuids of aggregates."""


def find_provider(client: Client, name: str) -> Row:
    """Return the provider with a uuid or a name; raise CommandError if there is none."""
    uuid = normalised_uuid(name)
    rows = client.providers(uuid=uuid) if uuid else []
    try:
        rows = rows or client.providers(name=name)
    except UnicodeError:
        rows = []
    if not rows:
        raise CommandError(f"there is no provider {name!r}")
    return rows[0]


TREE_OPTION = """
    --in-tree PROVIDER  only those in the tree of this provider, by name or uuid
"""


def build_tree_filter(client: Client, options: argparse.Namespace) -> dict[str, str]:
    """Return the filter of a list by the option `--in-tree`."""
    if not options.in_tree:
        return {}
    return {"in_tree": find_provider(client, options.in_tree)["uuid"]}


def resolve_providers(client: Client, query: CandidateQuery) -> CandidateQuery:
    """Return a query with names of providers replaced by their uuids."""
    return CandidateQuery(
        tuple((name, _resolve_value(client, name, text)) for name, text in query.parameters)
    )


def _resolve_value(client: Client, name: str, text: str) -> str:
    parameter = find_parameter(name)
    if parameter is None or not parameter.grammar.names_providers:
        return text
    sign = "!" if parameter.grammar is Grammar.TREES_OR_NOT and text[:1] == "!" else ""
    begin = f"{sign}in:" if text.startswith(f"{sign}in:") else sign
    names_text = text.removeprefix(begin)
    providers = names_text.split(",") if begin.endswith(":") else [names_text]
    return begin + ",".join(
        provider if normalised_uuid(provider) else find_provider(client, provider)["uuid"]
        for provider in providers
    )


def read_provider_names(client: Client, uuids: Iterable[str]) -> dict[str, str]:
    """Return the names of the existing providers by uuid."""
    sorted_uuids = sorted(set(uuids))
    if client.extension is not None:
        rows = list(read_rows(client, sorted_uuids, ()).values())
    else:
        pages = run_parallel(lambda uuid: client.providers(uuid=uuid), sorted_uuids)
        rows = [row for page in pages for row in page]
    return {row["uuid"]: row["name"] for row in rows}


DOMAINS_HELP = (
    "'tree', or aggregates, separated by commas: uuids, names, or words of a topology file; 'rack-{n}' "
    "is each aggregate named rack-0, rack-1, and so on"
)

_NUMBER = re.compile(r"\{n(?::0(\d))?\}")


def resolve_domains(client: Client, text: str) -> Domains:
    """Parse the value of an option for domains (`DOMAINS_HELP`); read aggregates to resolve words."""
    if text == TREES:
        return TREES
    words = [word.strip() for word in text.split(",")]
    if all(map(normalised_uuid, words)):
        return list(dict.fromkeys(map(aggregate_uuid, words)))
    names = read_aggregate_names(client) or {}
    totals = client.rows("/treeclaim/totals", "parts", by="aggregate")
    used_uuids = (str(total["uuid"]) for total in totals)
    names_in_use = {uuid: names.get(normalised_uuid(uuid) or uuid) for uuid in used_uuids}
    uuids: dict[str, None] = {}
    for word in words:
        key, pattern = aggregate_uuid(word), _compile_name_pattern(word)
        matches = [
            uuid
            for uuid, name in names_in_use.items()
            if uuid == key or (name is not None and pattern.fullmatch(name))
        ]
        if not matches and not normalised_uuid(word):
            raise CommandError(
                f"no provider is in an aggregate {word!r}. Domains are {TREES!r}, or aggregates, "
                "separated by commas: their uuids, names, or words of a topology file, such as "
                "rack-1,rack-2; 'rack-{n}' is each that has a number there"
            )
        uuids |= dict.fromkeys(matches or [key])
    return list(uuids)


def _compile_name_pattern(word: str) -> re.Pattern[str]:
    """Return a pattern of the names that match a word: `{n}` matches numbers."""
    place = _NUMBER.search(word)
    if place is None:
        return re.compile(re.escape(word))
    number = rf"\d{{{place[1]},}}" if place[1] else "(?:0|[1-9]\\d*)"
    return re.compile(re.escape(word[: place.start()]) + number + re.escape(word[place.end() :]))
