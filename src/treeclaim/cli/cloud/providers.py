# SPDX-License-Identifier: Apache-2.0
"""Providers as people name them, and the names of those in an answer, with few requests."""

import uuid
from collections.abc import Mapping
from typing import Any

from treeclaim.cli.output import CommandError
from treeclaim.client import CandidateQuery, Client
from treeclaim.client.parallel import in_parallel
from treeclaim.model.microversions import Feature
from treeclaim.model.query_parameters import Grammar, parameter_named

Row = dict[str, Any]
"""A provider as a list of them has it."""

_MOST_TREES = 20
"""Trees whose providers are listed one tree after the other; of more, all are listed at once. One
list of everything costs as much as some hundred providers' trees."""


def is_uuid(text: str) -> bool:
    """Tell whether a text is a uuid."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def find_provider(client: Client, name: str) -> Row:
    """Return the provider with a uuid or a name.

    Raises:
        CommandError: if there is none.
    """
    rows = client.providers(uuid=str(uuid.UUID(name))) if is_uuid(name) else []
    try:
        rows = rows or client.providers(name=name)
    except UnicodeError:
        rows = []
    if not rows:
        raise CommandError(f"there is no provider {name!r}")
    return rows[0]


def providers_of_tree(client: Client, provider: Row) -> list[Row]:
    """Return all providers of a provider's tree."""
    if not client.versions.has_feature(Feature.NESTED_PROVIDERS):
        return [provider]
    return client.providers(in_tree=provider["uuid"])


def with_uuids(client: Client, query: CandidateQuery) -> CandidateQuery:
    """Return a question with the uuids of providers that it names by name.

    Raises:
        CommandError: if there is no such provider.
    """
    return CandidateQuery(
        tuple((name, _value(client, name, text)) for name, text in query.parameters)
    )


def _value(client: Client, name: str, text: str) -> str:
    parameter = parameter_named(name)
    if parameter is None or not parameter.newest_grammar.names_providers:
        return text
    may_exclude = parameter.newest_grammar is Grammar.TREES_OR_NOT
    sign = "!" if may_exclude and text.startswith("!") else ""
    text = text.removeprefix(sign)
    begin = "in:" if text.startswith("in:") else ""
    parts = text.removeprefix(begin).split(",") if begin else [text]
    return (
        sign
        + begin
        + ",".join(
            part if is_uuid(part) else find_provider(client, part)["uuid"] for part in parts
        )
    )


def names_in(client: Client, answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the providers in an answer to a search, by uuid."""
    summaries = answer["provider_summaries"]
    roots = {
        summaries[uuid].get("root_provider_uuid")
        for request in answer["allocation_requests"]
        for uuid in _providers_in(request)
        if uuid in summaries
    }
    if not client.versions.has_feature(Feature.NESTED_CANDIDATES) or len(roots) > _MOST_TREES:
        listed = client.providers() if answer["allocation_requests"] else []
    else:
        trees = in_parallel(
            lambda root: client.providers(in_tree=str(root)), sorted(map(str, roots))
        )
        listed = [row for tree in trees for row in tree]
    return {row["uuid"]: row["name"] for row in listed}


def _providers_in(request: Mapping[str, Any]) -> set[str]:
    allocations = request["allocations"]
    if isinstance(allocations, list):
        return {allocation["resource_provider"]["uuid"] for allocation in allocations}
    mapped = (uuid for some in request.get("mappings", {}).values() for uuid in some)
    return {*allocations, *mapped}
