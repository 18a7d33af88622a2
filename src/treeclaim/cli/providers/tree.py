# SPDX-License-Identifier: Apache-2.0
"""`provider tree`: provider trees and their usage."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from rich.console import Group
from rich.tree import Tree

from treeclaim.cli.command import Cell, CloudLister, Result
from treeclaim.cli.names import find_provider
from treeclaim.cli.printing import Line, draw_bar, join_lines, make_line, show_waiting
from treeclaim.cli.providers.documents import (
    Document,
    add_holds,
    compute_load,
    format_fields,
    format_holds,
    format_inventories,
    format_part,
    read_documents,
)
from treeclaim.client import Client
from treeclaim.client.aggregates import AggregateNames, read_aggregate_names
from treeclaim.model.parts import AGGREGATES, CONDITIONS, INVENTORIES, SHOWN_PARTS, TRAITS

_FIELDS = ("total", "reserved", "allocation_ratio")
"""Fields of inventories that `--inventories` shows."""

TreeRow = tuple[int, Document]
"""The number of a provider's ancestors, and its document; without parts if only its descendants match."""


class ListTrees(CloudLister):
    """Show provider trees and how full they are: all, or the trees of some providers.

    Trees of named providers are shown with traits, aggregates, attributes and conditions.
    """

    example = "host-1 --inventories"
    arguments = """
        roots:ROOT...            uuid or name of any provider of a tree
        --depth LEVELS           show only this many levels below (default: all)
        --class classes:NAME...  show only providers with an inventory of a class
        --trait NAME...          show only providers with a trait
        --load PERCENT           show only providers with at least this percentage of some class used
        --inventories            also show total, reserved and ratio
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        parts = SHOWN_PARTS if options.roots else (CONDITIONS,)
        roots = [find_provider(client, name)["root_provider_uuid"] for name in options.roots]
        filters = {"in_tree": f"in:{','.join(dict.fromkeys(roots))}"} if roots else {}
        with show_waiting("reading providers"):
            documents = read_documents(client, parts, **filters)
        add_holds(client, documents, filters)
        rows = list(_walk_trees(documents.values(), options.depth))
        is_filtered = bool(options.classes or options.trait or options.load is not None)
        if is_filtered:
            rows = _select_rows(client, rows, options)
        columns = (
            "Name",
            "UUID",
            "Root",
            "Depth",
            "Inventories",
            *(p.name.title() for p in parts),
        )
        if not rows:
            note = "No provider matches." if is_filtered else "There are no providers."
            return Result(columns, (), [], notes=[note])
        has_aggregates = any(document.get(AGGREGATES.name) for _, document in rows)
        names = (has_aggregates and read_aggregate_names(client)) or {}
        fields = _FIELDS if options.inventories else ()

        def cells(depth: int, document: Document) -> Iterator[Any]:
            yield Cell(document["name"], lambda name: ["  " * depth + name])
            yield from (document["uuid"], document["root_provider_uuid"], depth)
            stock = document.get(INVENTORIES.name, {})
            yield Cell(stock, partial(format_inventories, shown_fields=fields))
            for part in parts:
                value = document.get(part.name, part.to_json(part.empty))
                yield Cell(value, partial(format_part, part, names))

        return Result(
            columns,
            [tuple(cells(*row)) for row in rows],
            _nest(rows),
            Group(*_draw_trees(rows, fields, names)),
        )


def _select_rows(
    client: Client, rows: Sequence[TreeRow], options: argparse.Namespace
) -> list[TreeRow]:
    """Return the providers that match the options, and their ancestors."""
    uuids = {document["uuid"] for _, document in rows}
    if options.trait:
        uuids = {row["uuid"] for row in client.providers(required=",".join(options.trait))}
    ancestor_uuids: set[str | None] = set()
    matching_rows: list[TreeRow] = []
    for depth, document in reversed(rows):
        stock = document[INVENTORIES.name]
        if options.classes:
            stock = {name: fields for name, fields in stock.items() if name in options.classes}
        is_loaded = options.load is None or any(
            compute_load(fields) >= options.load for fields in stock.values()
        )
        if document["uuid"] in uuids and is_loaded and (stock or not options.classes):
            matching_rows.append((depth, {**document, INVENTORIES.name: stock}))
        elif document["uuid"] in ancestor_uuids:
            shown_members = ("uuid", "name", "parent_provider_uuid", "root_provider_uuid")
            matching_rows.append((depth, {name: document[name] for name in shown_members}))
        else:
            continue
        ancestor_uuids.add(document["parent_provider_uuid"])
    return matching_rows[::-1]


def _walk_trees(documents: Iterable[Document], depth: int | None) -> Iterator[TreeRow]:
    """Yield providers in pre-order, siblings by name, down to a depth."""
    by_name = sorted(documents, key=lambda document: str(document["name"]), reverse=True)
    uuids = {document["uuid"] for document in by_name}
    children: dict[str | None, list[Document]] = {}
    for document in by_name:
        parent = document["parent_provider_uuid"]
        children.setdefault(parent if parent in uuids else None, []).append(document)
    # A tree may be deeper than Python's stack.
    stack = [(0, document) for document in children.get(None, ())]
    while stack:
        level, document = stack.pop()
        yield level, document
        if depth is None or level < depth:
            stack += [(level + 1, child) for child in children.get(document["uuid"], ())]


def _nest(rows: Sequence[TreeRow]) -> list[Document]:
    levels: list[list[Document]] = [[]]
    for depth, document in rows:
        children: list[Document] = []
        levels[depth].append({**document, "children": children})
        levels[depth + 1 :] = [children]
    return levels[0]


def _draw_trees(
    rows: Sequence[TreeRow], fields: Sequence[str], names: AggregateNames
) -> list[Tree]:
    branches: list[Tree] = []
    roots: list[Tree] = []
    for depth, document in rows:
        label = join_lines(_format_provider(document, fields, names))
        branches[depth:] = [branches[depth - 1].add(label) if depth else Tree(label)]
        roots += branches if not depth else ()
    return roots


def _format_provider(
    document: Document, shown_fields: Sequence[str], names: AggregateNames
) -> Iterator[Line]:
    yield make_line((document["name"], "bold"), (f" {document['uuid']}", "dim"))
    for part in SHOWN_PARTS:
        word = "" if part is TRAITS else f"{part.single} "
        texts = format_part(part, names, document[part.name]) if part.name in document else ()
        for text in texts:
            yield make_line(f"  {word}{text}", style="cyan" if part is TRAITS else "")
    for name, fields in document.get(INVENTORIES.name, {}).items():
        held_amount = sum(entry["amount"] for entry in fields.get("held", ()))
        used_amount, capacity = fields["used"], fields["capacity"]
        bar_text = f"  {name} {draw_bar(used_amount, capacity, held_part=held_amount, width=20)} {used_amount}/{capacity}"
        yield make_line(bar_text, (format_fields(fields, shown_fields), "dim"))
        for text in format_holds(fields):
            yield make_line(f"    {text}", style="dim")
