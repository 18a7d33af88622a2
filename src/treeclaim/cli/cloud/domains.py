# SPDX-License-Identifier: Apache-2.0
"""Domains as people name them: trees, or aggregates by uuid or by the name in a topology file.

A service knows aggregates by uuid alone. A topology file may name them in words, and each word stands
for a uuid that is made of it (`aggregate_uuid`); so the same word names the same aggregate here.
"""

import re
from collections.abc import Iterator

from treeclaim.cli.cloud.providers import is_uuid
from treeclaim.cli.output import CommandError
from treeclaim.client import Client
from treeclaim.client.reports import Reports
from treeclaim.client.requests.placing import TREES, Domains
from treeclaim.client.topology import aggregate_uuid

DOMAINS_HELP = (
    "'tree', or aggregates, separated by commas: uuids, or names as in a topology file; 'rack-{n}' "
    "is each aggregate named rack-0, rack-1, and so on"
)

_NUMBER = re.compile(r"\{n(:0\d)?\}")
_NUMBERS = 10_000
"""Numbers that are tried in the place of `{n}`, from 0."""


def domains_of(client: Client, text: str) -> Domains:
    """Return the domains that an option names.

    Args:
        client: Asked for its aggregates where some are named by words.
        text: See `DOMAINS_HELP`.

    Raises:
        CommandError: if a word names no aggregate in which a provider is.
    """
    if text == TREES:
        return TREES
    words = [word.strip() for word in text.split(",")]
    there = set() if all(map(is_uuid, words)) else _aggregates(client)
    found = [uuid for word in words for uuid in _named(word, there)]
    return list(dict.fromkeys(found))


def _aggregates(client: Client) -> set[str]:
    """Return the uuids of the aggregates in which a provider is."""
    return {str(part["uuid"]) for part in Reports(client).parts("aggregate")}


def _named(word: str, there: set[str]) -> list[str]:
    """Return the aggregates that a word names.

    Raises:
        CommandError: if there is none.
    """
    if is_uuid(word):
        return [aggregate_uuid(word)]
    found = [uuid for uuid in map(aggregate_uuid, _spelled_out(word)) if uuid in there]
    if not found:
        raise CommandError(
            f"no provider is in an aggregate {word!r}. Domains are {TREES!r}, or aggregates, "
            "separated by commas: their uuids, or the names that a topology file gave them, such as "
            "rack-1,rack-2; 'rack-{n}' is each that has a number there"
        )
    return found


def _spelled_out(word: str) -> Iterator[str]:
    """Yield a word with each number that may stand in the place of `{n}`."""
    place = _NUMBER.search(word)
    if place is None:
        yield word
        return
    form = (place[1] or ":")[1:]
    for number in range(_NUMBERS):
        yield word.replace(place[0], format(number, form))
