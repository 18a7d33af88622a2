# SPDX-License-Identifier: Apache-2.0
"""`provider tree`: provider trees, and how full they are."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Group
from rich.tree import Tree

from treeclaim.cli.command import Cell, CloudLister, Result
from treeclaim.cli.names import Row, find_provider, providers_of_tree
from treeclaim.cli.printing import Line, bar, line, lines, shown_progress
from treeclaim.cli.providers.contents import (
    Document,
    add_held,
    details_of,
    fields_in_words,
    load_of,
    read_contents,
    stock_in_words,
    texts_of,
)
from treeclaim.client import Client
from treeclaim.client.aggregates import AggregateNames, read_aggregate_names
from treeclaim.model.parts import (
    AGGREGATES,
    CONDITIONS,
    INVENTORIES,
    SHOWN_PARTS,
    TRAITS,
    ProviderPart,
)

_FIELDS = ("total", "reserved", "allocation_ratio")
"""Fields of inventories that `--inventories` shows."""

DepthRow = tuple[int, Row]
"""A provider and the number of its ancestors."""


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

    def answer(self, client: Client, options: argparse.Namespace) -> Result:
        rows, documents = _read_trees(client, options)
        has_aggregates = any(document.get(AGGREGATES.name) for document in documents.values())
        names = (has_aggregates and read_aggregate_names(client)) or {}
        fields = _FIELDS if options.inventories else ()
        parts = _shown_parts(options)
        shown_names = (part.name.title() for part in (INVENTORIES, *parts))
        columns = ("Name", "UUID", "Root", "Depth", *shown_names)
        if not rows:
            none = "No provider matches." if _is_filtered(options) else "There are no providers."
            return Result(columns, (), [], notes=[none])

        def cells(depth: int, row: Row) -> Iterator[Any]:
            document = documents.get(row["uuid"], {})
            yield Cell(row["name"], lambda name: ["  " * depth + name])
            yield from (row["uuid"], row.get("root_provider_uuid"), depth)
            stock = document.get(INVENTORIES.name, {})
            yield Cell(stock, partial(stock_in_words, shown_fields=fields))
            for part in parts:
                value = document.get(part.name, part.written(part.empty))
                yield Cell(value, partial(texts_of, part, names))

        return Result(
            columns,
            [tuple(cells(depth, row)) for depth, row in rows],
            _nest(rows, documents),
            Group(*_pictures(rows, documents, fields, names)),
        )


def _read_trees(
    client: Client, options: argparse.Namespace
) -> tuple[list[DepthRow], dict[str, Document]]:
    """Return the providers to show, and the documents of those that pass the filters, by uuid."""
    rows = list(_preorder(_providers(client, options.roots), options.depth))
    chosen = [row for _, row in rows]
    if options.trait:
        matching = {row["uuid"] for row in client.providers(required=",".join(options.trait))}
        chosen = [row for row in chosen if row["uuid"] in matching]
    with shown_progress() as report:
        documents = read_contents(client, chosen, _shown_parts(options), report)
    roots = [row["uuid"] for depth, row in rows if not depth]
    add_held(client, documents, roots if options.roots else ())
    for uuid, document in list(documents.items()):
        if options.classes:
            stock = document[INVENTORIES.name]
            document[INVENTORIES.name] = {
                name: fields for name, fields in stock.items() if name in options.classes
            }
        if not _is_shown(document, options):
            del documents[uuid]
    return (_with_ancestors(rows, documents) if _is_filtered(options) else rows), documents


def _shown_parts(options: argparse.Namespace) -> Sequence[ProviderPart[Any]]:
    return SHOWN_PARTS if options.roots else (CONDITIONS,)


def _providers(client: Client, names: Sequence[str]) -> list[Row]:
    """Return all providers, or those of some trees: a cloud has more than fits a screen."""
    if not names:
        return client.providers()
    trees = [providers_of_tree(client, find_provider(client, name)) for name in names]
    return list({row["uuid"]: row for tree in trees for row in tree}.values())


def _preorder(rows: Sequence[Row], depth: int | None) -> Iterator[DepthRow]:
    """Yield providers below each other, by name, down to a depth."""
    uuids = {row["uuid"] for row in rows}
    children: dict[str | None, list[Row]] = {}
    for row in sorted(rows, key=lambda row: str(row["name"]), reverse=True):
        parent = row.get("parent_provider_uuid")
        children.setdefault(parent if parent in uuids else None, []).append(row)
    # Not by recursion: a tree may be deeper than Python's stack.
    stack = [(0, row) for row in children.get(None, ())]
    while stack:
        level, row = stack.pop()
        yield level, row
        if depth is None or level < depth:
            stack += [(level + 1, child) for child in children.get(row["uuid"], ())]


def _with_ancestors(rows: Sequence[DepthRow], documents: Mapping[str, Any]) -> list[DepthRow]:
    kept: set[str | None] = set(documents)
    for _, row in reversed(rows):
        if row["uuid"] in kept:
            kept.add(row.get("parent_provider_uuid"))
    return [(depth, row) for depth, row in rows if row["uuid"] in kept]


def _is_filtered(options: argparse.Namespace) -> bool:
    return bool(options.classes or options.trait or options.load is not None)


def _is_shown(document: Document, options: argparse.Namespace) -> bool:
    stock = document[INVENTORIES.name]
    if options.classes and not stock:
        return False
    return options.load is None or any(
        load_of(fields) >= options.load for fields in stock.values()
    )


def _nest(rows: Sequence[DepthRow], documents: Mapping[str, Document]) -> list[Document]:
    levels: list[list[Document]] = [[]]
    for depth, row in rows:
        document = documents.get(row["uuid"], {"uuid": row["uuid"], "name": row["name"]})
        children: list[Document] = []
        levels[depth].append({**document, "children": children})
        levels[depth + 1 :] = [children]
    return levels[0]


def _pictures(
    rows: Sequence[DepthRow],
    documents: Mapping[str, Document],
    fields: Sequence[str],
    names: AggregateNames,
) -> list[Tree]:
    branches: list[Tree] = []
    roots: list[Tree] = []
    for depth, row in rows:
        label = lines(_lines(row, documents.get(row["uuid"], {}), fields, names))
        branches[depth:] = [branches[depth - 1].add(label) if depth else Tree(label)]
        roots += branches if not depth else ()
    return roots


def _lines(
    row: Row, document: Document, shown_fields: Sequence[str], names: AggregateNames
) -> Iterator[Line]:
    yield line((row["name"], "bold"), (f" {row['uuid']}", "dim"))
    for part in SHOWN_PARTS:
        word = "" if part is TRAITS else f"{part.single} "
        texts = texts_of(part, names, document[part.name]) if part.name in document else ()
        for text in texts:
            yield line(f"  {word}{text}", style="cyan" if part is TRAITS else "")
    for name, fields in document.get(INVENTORIES.name, {}).items():
        held = sum(entry["amount"] for entry in fields.get("held", ()))
        used, capacity = fields["used"], fields["capacity"]
        full = f"  {name} {bar(used, capacity, held=held, width=20)} {used}/{capacity}"
        yield line(full, (fields_in_words(fields, shown_fields), "dim"))
        for text in details_of(fields):
            yield line(f"    {text}", style="dim")
