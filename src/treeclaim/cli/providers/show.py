# SPDX-License-Identifier: Apache-2.0
"""`provider show` and `provider watch`: a provider, and changes of providers."""

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any

from treeclaim.cli.command import Cell, CloudAction, CloudShow, Result, lines
from treeclaim.cli.names import find_provider, provider_names
from treeclaim.cli.output import CommandError, print_json, print_lines
from treeclaim.cli.printing import amounts_in_words
from treeclaim.cli.providers.contents import read_documents, stock_in_words, texts_of
from treeclaim.client import Client, ClientError
from treeclaim.client.aggregates import read_aggregate_names
from treeclaim.client.watching import watch
from treeclaim.model.names import normalised_uuid
from treeclaim.model.parts import SHOWN_PARTS

_MOST_CONSUMERS = 20
"""Consumers shown of a provider; `-f json` has all."""

_FIELDS = ("total", "reserved", "allocation_ratio", "min_unit", "max_unit", "step_size")


class ShowProvider(CloudShow):
    """Show a provider: its place in the tree, its inventories, its other parts and its consumers."""

    example = "host-1"

    arguments = "PROVIDER  its name or uuid"

    def answer(self, client: Client, options: argparse.Namespace) -> Result:
        row = find_provider(client, options.provider)
        tree = read_documents(client, SHOWN_PARTS, in_tree=row["uuid"])
        if row["uuid"] not in tree:
            raise CommandError(f"provider {row['name']!r} was deleted meanwhile")
        path = f"/resource_providers/{row['uuid']}/allocations"
        allocations = client.get(path)["allocations"]
        document = {**tree[row["uuid"]], "allocations": allocations}
        names = read_aggregate_names(client) or {}
        parent = tree.get(document["parent_provider_uuid"] or "")
        children = sorted(
            provider["name"]
            for provider in tree.values()
            if provider["parent_provider_uuid"] == row["uuid"]
        )
        fields = {
            "Name": row["name"],
            "UUID": row["uuid"],
            "Generation": document["generation"],
            "Parent": None if parent is None else f"{parent['name']} {parent['uuid']}",
            "Children": lines(children),
            "Inventories": Cell(
                document["inventories"], partial(stock_in_words, shown_fields=_FIELDS)
            ),
        }
        for part in SHOWN_PARTS:
            fields[part.name.title()] = lines(texts_of(part, names, document[part.name]))
        fields["Consumers"] = Cell(allocations, _consumer_lines)
        return Result(tuple(fields), tuple(fields.values()), document)


def _consumer_lines(allocations: Mapping[str, Any]) -> list[str]:
    texts = [
        f"{uuid}: {amounts_in_words(allocations[uuid]['resources'])}"
        for uuid in sorted(allocations)[:_MOST_CONSUMERS]
    ]
    missing = len(allocations) - _MOST_CONSUMERS
    return [*texts, f"and {missing} more (-f json shows all)"] if missing > 0 else texts


class WatchChanges(CloudAction):
    """Print changes of providers as they happen, until interrupted."""

    example = "--in-tree host-1"

    arguments = """
        --since CURSOR         begin at a cursor (default: the present)
        --in-tree PROVIDER...  only the tree of a provider, by name or uuid (default: all)
        -f,--format json|value = value  json: one document per line
    """

    def act(self, client: Client, options: argparse.Namespace) -> None:
        roots = [
            name if normalised_uuid(name) else find_provider(client, name)["uuid"]
            for name in options.in_tree
        ]
        for changes in watch(client, options.since, in_tree=roots):
            if options.format == "json":
                print_json(changes, indent=None)
                print_lines(flush=True)
            else:
                print_lines(*_changes_lines(client, changes), flush=True)


def _changes_lines(client: Client, document: Mapping[str, Any]) -> list[str]:
    lines = ["catalogue"] if document["catalogue"] else []
    present = [change["uuid"] for change in document["changes"] if "generation" in change]
    try:
        names = provider_names(client, present)
    except ClientError:
        # The service may be away for a moment, which does not end a watch.
        names = {}
    for change in document["changes"]:
        if "generation" in change:
            name = names.get(change["uuid"], "")
            state = f"{change['generation']} {','.join(change['what'])} {name}".rstrip()
        else:
            state = "deleted"
        lines.append(f"{change['uuid']} {state}")
    return lines
