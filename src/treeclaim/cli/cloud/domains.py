# SPDX-License-Identifier: Apache-2.0
"""Domains as people name them: trees, or aggregates by uuid, by name, or by the word in a topology file.

A topology file may name aggregates in words, and each word stands for a uuid that is made of it
(`aggregate_uuid`); so the same word names the same aggregate here, also where the service keeps no
names.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from treeclaim.cli.cloud.providers import is_uuid
from treeclaim.cli.output import CommandError
from treeclaim.client import Client
from treeclaim.client.aggregates import AggregateNames
from treeclaim.client.reports import Reports
from treeclaim.client.requests.placing import TREES, Domains
from treeclaim.client.topology import aggregate_uuid

DOMAINS_HELP = (
    "'tree', or aggregates, separated by commas: uuids, names, or words of a topology file; 'rack-{n}' "
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
    aggregates = {} if all(map(is_uuid, words)) else _aggregates(client)
    uuids = [uuid for word in words for uuid in _named(word, aggregates)]
    return list(dict.fromkeys(uuids))


def _aggregates(client: Client) -> dict[str, list[str]]:
    """Return the uuids of the aggregates in which a provider is, by uuid and by name."""
    names = AggregateNames.read(client)
    uuids_by_word: dict[str, list[str]] = {}
    for part in Reports(client).parts("aggregate"):
        uuid = str(part["uuid"])
        for word in {uuid, names.name_of(uuid) or uuid}:
            uuids_by_word.setdefault(word, []).append(uuid)
    return uuids_by_word


def _named(word: str, aggregates: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the aggregates that a word names.

    Raises:
        CommandError: if there is none.
    """
    if is_uuid(word):
        return [aggregate_uuid(word)]
    uuids = [
        uuid
        for name in _spelled_out(word)
        for key in (name, aggregate_uuid(name))
        for uuid in aggregates.get(key, ())
    ]
    if not uuids:
        raise CommandError(
            f"no provider is in an aggregate {word!r}. Domains are {TREES!r}, or aggregates, "
            "separated by commas: their uuids, names, or words of a topology file, such as "
            "rack-1,rack-2; 'rack-{n}' is each that has a number there"
        )
    return uuids


def _spelled_out(word: str) -> Iterator[str]:
    """Yield a word with each number that may stand in the place of `{n}`."""
    place = _NUMBER.search(word)
    if place is None:
        yield word
        return
    form = (place[1] or ":")[1:]
    for number in range(_NUMBERS):
        yield word.replace(place[0], format(number, form))
