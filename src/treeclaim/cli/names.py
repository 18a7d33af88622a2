# SPDX-License-Identifier: Apache-2.0
"""Providers and domains as people name them, and the names of providers in an answer, with few requests.

Domains are trees, or aggregates by uuid, by name, or by the word in a topology file, which stands for a
uuid made from it (`aggregate_uuid`): so the same word names the same aggregate here, even if the
service keeps no names.
"""

import argparse
import re
from collections.abc import Iterable
from typing import Any

from treeclaim.cli.output import CommandError
from treeclaim.client import CandidateQuery, Client
from treeclaim.client.aggregates import read_aggregate_names
from treeclaim.client.session import in_parallel
from treeclaim.client.states import read_rows
from treeclaim.model.names import aggregate_uuid, normalised_uuid
from treeclaim.model.query.parameters import Grammar, find_parameter

Row = dict[str, Any]
"""A provider as a list of them has it."""

TREES = "tree"
"""Domains that are trees."""

Domains = str | list[str]
"""`TREES`, or uuids of aggregates."""


def find_provider(client: Client, name: str) -> Row:
    """Return the provider with a uuid or a name."""
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
"""The option that restricts a list to a tree."""


def tree_filter(client: Client, options: argparse.Namespace) -> dict[str, str]:
    """Return the filter of a list by the option `--in-tree`; empty without it."""
    if not options.in_tree:
        return {}
    return {"in_tree": find_provider(client, options.in_tree)["uuid"]}


def with_uuids(client: Client, query: CandidateQuery) -> CandidateQuery:
    """Return a question with the uuids of providers that it names by name."""
    return CandidateQuery(
        tuple((name, _value(client, name, text)) for name, text in query.parameters)
    )


def _value(client: Client, name: str, text: str) -> str:
    parameter = find_parameter(name)
    if parameter is None or not parameter.grammar.names_providers:
        return text
    sign = "!" if parameter.grammar is Grammar.TREES_OR_NOT and text[:1] == "!" else ""
    begin = f"{sign}in:" if text.startswith(f"{sign}in:") else sign
    listed = text.removeprefix(begin)
    providers = listed.split(",") if begin.endswith(":") else [listed]
    return begin + ",".join(
        provider if normalised_uuid(provider) else find_provider(client, provider)["uuid"]
        for provider in providers
    )


def provider_names(client: Client, uuids: Iterable[str]) -> dict[str, str]:
    """Return the names of providers by uuid; those that do not exist are left out."""
    chosen = sorted(set(uuids))
    if client.extension is not None:
        rows = list(read_rows(client, chosen, ()).values())
    else:
        pages = in_parallel(lambda uuid: client.providers(uuid=uuid), chosen)
        rows = [row for page in pages for row in page]
    return {row["uuid"]: row["name"] for row in rows}


DOMAINS_HELP = (
    "'tree', or aggregates, separated by commas: uuids, names, or words of a topology file; 'rack-{n}' "
    "is each aggregate named rack-0, rack-1, and so on"
)

_NUMBER = re.compile(r"\{n(?::0(\d))?\}")


def domains_of(client: Client, text: str) -> Domains:
    """Return the domains that an option names.

    Args:
        client: Reads aggregates, if the text has words for some.
        text: See `DOMAINS_HELP`.
    """
    if text == TREES:
        return TREES
    words = [word.strip() for word in text.split(",")]
    if all(map(normalised_uuid, words)):
        return list(dict.fromkeys(map(aggregate_uuid, words)))
    names = read_aggregate_names(client) or {}
    parts = client.rows("/treeclaim/totals", "parts", by="aggregate")
    uuids_in_use = (str(part["uuid"]) for part in parts)
    used = {uuid: names.get(normalised_uuid(uuid) or uuid) for uuid in uuids_in_use}
    uuids: dict[str, None] = {}
    for word in words:
        key, pattern = aggregate_uuid(word), _pattern_of(word)
        matches = [
            uuid
            for uuid, name in used.items()
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


def _pattern_of(word: str) -> re.Pattern[str]:
    """Return a pattern of the names that a word stands for: numbers in the place of `{n}`, or only itself."""
    place = _NUMBER.search(word)
    if place is None:
        return re.compile(re.escape(word))
    number = rf"\d{{{place[1]},}}" if place[1] else "(?:0|[1-9]\\d*)"
    return re.compile(re.escape(word[: place.start()]) + number + re.escape(word[place.end() :]))
