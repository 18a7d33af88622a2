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
from treeclaim.cli.printing import Line, bar, line, lines
from treeclaim.cli.progress import shown_progress
from treeclaim.cli.providers.contents import (
    Document,
    add_held,
    children_of,
    details_of,
    load_of,
    read_contents,
    with_ancestors,
)
from treeclaim.client import Client
from treeclaim.client.aggregates import NO_NAMES, AggregateNames
from treeclaim.model.parts import (
    AGGREGATES,
    CONDITIONS,
    INVENTORIES,
    SHOWN_PARTS,
    TRAITS,
    ListedPart,
)


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
        --[no-]traits            show traits (default: yes if trees are named)
        --[no-]aggregates        show aggregates (default: yes if trees are named)
        --[no-]attributes        show attributes (default: yes if trees are named)
        --[no-]conditions        show conditions (default: yes)
        --inventories            also show total, reserved and ratio
    """

    def answer(self, client: Client, options: argparse.Namespace) -> Result:
        children, documents = _read_trees(client, options)
        has_aggregates = any(document.get(AGGREGATES.name) for document in documents.values())
        names = AggregateNames.read(client) if has_aggregates else NO_NAMES
        parts = [
            part
            for part in SHOWN_PARTS
            if any(part.name in document for document in documents.values())
        ]
        columns = (
            *("Name", "UUID", "Root", "Depth"),
            *(part.name.title() for part in (INVENTORIES, *parts)),
        )
        if not children:
            none = "No provider matches." if _is_filtered(options) else "There are no providers."
            return Result(columns, (), [], notes=[none])
        rows = [
            (
                Cell(row["name"], partial(_indent, depth)),
                row["uuid"],
                row.get("root_provider_uuid"),
                depth,
                *_cells(documents.get(row["uuid"], {}), parts, options, names),
            )
            for depth, row in _preorder(children)
        ]
        return Result(
            columns,
            rows,
            [_nest(row, documents, children) for row in children[None]],
            Group(*_pictures(children, documents, options, names)),
        )


def _indent(depth: int, name: str) -> list[str]:
    return ["  " * depth + name]


def _preorder(children: Mapping[str | None, Sequence[Row]]) -> Iterator[tuple[int, Row]]:
    # Not by recursion: a tree may be deeper than Python's stack.
    stack = [(0, row) for row in reversed(children.get(None, ()))]
    while stack:
        depth, row = stack.pop()
        yield depth, row
        stack += [(depth + 1, child) for child in reversed(children.get(row["uuid"], ()))]


def _cells(
    document: Document,
    parts: Sequence[ListedPart[Any]],
    options: argparse.Namespace,
    names: AggregateNames,
) -> Iterator[Cell]:
    """Yield the cells of a provider: its inventories, then its other parts."""
    yield Cell(
        _stock(document, options),
        lambda stock: [
            f"{name} {fields['used']}/{fields['capacity']}{_fields(fields, options)}"
            for name, fields in stock.items()
        ],
    )
    for part in parts:
        value = document.get(part.name, part.written(part.empty))
        yield Cell(value, partial(texts_of, part, names))


def texts_of(part: ListedPart[Any], names: AggregateNames, value: Any) -> list[str]:
    """Return the entries of a part in words, with the names of aggregates.

    Args:
        part: The part.
        names: The names of aggregates.
        value: Of the part, in a document.
    """
    return names.all_shown(value) if part is AGGREGATES else part.texts(part.read(value))


def _read_trees(
    client: Client, options: argparse.Namespace
) -> tuple[dict[str | None, list[Row]], dict[str, Document]]:
    """Return the providers to show, by parent, and the documents of those that pass, by uuid."""
    choices = {part: getattr(options, part.name) for part in SHOWN_PARTS}
    parts = [
        part
        for part, choice in choices.items()
        if (options.roots or part is CONDITIONS if choice is None else choice)
    ]
    rows = _within(_providers(client, options.roots), options.depth)
    chosen = _with_traits(client, rows, options.trait)
    with shown_progress() as report:
        documents = read_contents(client, chosen, parts, report)
    roots = [row["uuid"] for row in rows if not row.get("parent_provider_uuid")]
    add_held(client, documents, roots if options.roots else ())
    kept = {uuid: document for uuid, document in documents.items() if _is_shown(document, options)}
    shown = list(with_ancestors(rows, set(kept))) if _is_filtered(options) else rows
    return children_of(shown), kept


def _pictures(
    children: Mapping[str | None, Sequence[Row]],
    documents: Mapping[str, Document],
    options: argparse.Namespace,
    names: AggregateNames,
) -> Iterator[Tree]:
    def label(row: Row) -> Line:
        return lines(_lines(row, documents.get(row["uuid"]), options, names))

    for root in children.get(None, []):
        tree = Tree(label(root))
        # Not by recursion: a tree may be deeper than Python's stack.
        stack = [(tree, root)]
        while stack:
            branch, parent = stack.pop()
            stack += [(branch.add(label(row)), row) for row in children.get(parent["uuid"], [])]
        yield tree


def _providers(client: Client, names: Sequence[str]) -> list[Row]:
    """Return all providers, or those of some trees: a cloud has more than fits a screen."""
    if not names:
        return client.providers()
    providers: dict[str, Row] = {}
    for name in names:
        for row in providers_of_tree(client, find_provider(client, name)):
            providers[row["uuid"]] = row
    return list(providers.values())


def _within(rows: Sequence[Row], depth: int | None) -> list[Row]:
    """Leave out what is too many levels below a root."""
    if depth is None:
        return list(rows)
    children = children_of(rows)
    kept = level = children.get(None, [])
    for _ in range(depth):
        level = [row for above in level for row in children.get(above["uuid"], [])]
        if not level:
            break
        kept = [*kept, *level]
    return kept


def _with_traits(client: Client, rows: Sequence[Row], traits: Sequence[str]) -> list[Row]:
    if not traits:
        return list(rows)
    matching_rows = client.providers(required=",".join(traits))
    matching_uuids = {row["uuid"] for row in matching_rows}
    return [row for row in rows if row["uuid"] in matching_uuids]


def _is_filtered(options: argparse.Namespace) -> bool:
    return bool(options.classes or options.trait or options.load is not None)


def _is_shown(document: Document, options: argparse.Namespace) -> bool:
    stock = _stock(document, options)
    if options.classes and not stock:
        return False
    return options.load is None or any(
        load_of(fields) >= options.load for fields in stock.values()
    )


def _stock(document: Document, options: argparse.Namespace) -> dict[str, Any]:
    """Return the inventories to show, by class."""
    return {
        name: fields
        for name, fields in document.get(INVENTORIES.name, {}).items()
        if not options.classes or name in options.classes
    }


def _nest(
    row: Row, documents: Mapping[str, Document], children: Mapping[str | None, Sequence[Row]]
) -> Document:
    """Return the document of a provider with those of its children."""
    uuid = row["uuid"]
    document = documents.get(uuid, {"uuid": uuid, "name": row["name"]})
    below = [_nest(child, documents, children) for child in children.get(uuid, [])]
    return {**document, "children": below}


def _lines(
    row: Row, document: Document | None, options: argparse.Namespace, names: AggregateNames
) -> Iterator[Line]:
    yield line((row["name"], "bold"), (f" {row['uuid']}", "dim"))
    if document is None:
        return
    for part in SHOWN_PARTS:
        word = "" if part.speaks_for_itself else f"{part.single} "
        texts = texts_of(part, names, document[part.name]) if part.name in document else ()
        for text in texts:
            yield line(f"  {word}{text}", style="cyan" if part is TRAITS else "")
    for name, fields in _stock(document, options).items():
        held = sum(entry["amount"] for entry in fields.get("held", ()))
        used, capacity = fields["used"], fields["capacity"]
        full = f"  {name} {bar(used, capacity, held=held, width=20)} {used}/{capacity}"
        yield line(full, (_fields(fields, options), "dim"))
        for text in details_of(fields):
            yield line(f"    {text}", style="dim")


def _fields(fields: Mapping[str, Any], options: argparse.Namespace) -> str:
    if not options.inventories:
        return ""
    total, reserved, ratio = (fields[name] for name in ("total", "reserved", "allocation_ratio"))
    return f" (total {total}, reserved {reserved}, ratio {ratio})"
