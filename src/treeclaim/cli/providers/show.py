# SPDX-License-Identifier: Apache-2.0
"""`provider show` and `provider watch`."""

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any

from treeclaim.cli.command import Cell, CloudAction, CloudShow, Result
from treeclaim.cli.names import find_provider, read_provider_names
from treeclaim.cli.output import CommandError, print_json, print_lines
from treeclaim.cli.printing import format_amounts
from treeclaim.cli.providers.documents import format_inventories, format_part, read_documents
from treeclaim.client import Client, ClientError
from treeclaim.client.aggregates import read_aggregate_names
from treeclaim.client.watching import watch
from treeclaim.model.names import normalised_uuid
from treeclaim.model.parts import SHOWN_PARTS

_MOST_CONSUMERS = 20
"""Consumers shown; `-f json` has all."""

_FIELDS = ("total", "reserved", "allocation_ratio", "min_unit", "max_unit", "step_size")


class ShowProvider(CloudShow):
    """Show a provider: its place in the tree, its inventories, its other parts and its consumers."""

    example = "host-1"

    arguments = "PROVIDER  its name or uuid"

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
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
            "Children": Cell.of_lines(children),
            "Inventories": Cell(
                document["inventories"], partial(format_inventories, shown_fields=_FIELDS)
            ),
        }
        for part in SHOWN_PARTS:
            fields[part.name.title()] = Cell.of_lines(
                format_part(part, names, document[part.name])
            )
        fields["Consumers"] = Cell(allocations, _format_consumers)
        return Result(tuple(fields), tuple(fields.values()), document)


def _format_consumers(allocations: Mapping[str, Any]) -> list[str]:
    texts = [
        f"{uuid}: {format_amounts(allocations[uuid]['resources'])}"
        for uuid in sorted(allocations)[:_MOST_CONSUMERS]
    ]
    missing_count = len(allocations) - _MOST_CONSUMERS
    return (
        [*texts, f"and {missing_count} more (-f json shows all)"] if missing_count > 0 else texts
    )


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
                print_lines(*_format_changes(client, changes), flush=True)


def _format_changes(client: Client, document: Mapping[str, Any]) -> list[str]:
    lines = ["catalogue"] if document["catalogue"] else []
    present_uuids = [change["uuid"] for change in document["changes"] if "generation" in change]
    try:
        names = read_provider_names(client, present_uuids)
    except ClientError:
        # A watch survives a short outage of the service.
        names = {}
    for change in document["changes"]:
        if "generation" in change:
            name = names.get(change["uuid"], "")
            state = f"{change['generation']} {','.join(change['what'])} {name}".rstrip()
        else:
            state = "deleted"
        lines.append(f"{change['uuid']} {state}")
    return lines
