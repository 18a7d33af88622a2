# SPDX-License-Identifier: Apache-2.0
"""`provider tree`: provider trees, and how full they are."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Group
from rich.tree import Tree

from treeclaim.cli.arguments import natural
from treeclaim.cli.command import Cell, CloudLister, Result
from treeclaim.cli.names import Row, find_provider, providers_of_tree
from treeclaim.cli.printing import Line, Printer, bar, line, lines
from treeclaim.cli.progress import shown_progress
from treeclaim.cli.providers.contents import (
    Contents,
    Stock,
    children_of,
    held_in,
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

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "roots", nargs="*", metavar="ROOT", help="uuid or name of any provider of a tree"
        )
        parser.add_argument(
            "--depth", type=natural, help="show only this many levels below (default: all)"
        )
        parser.add_argument(
            "--class",
            dest="classes",
            action="append",
            default=[],
            metavar="NAME",
            help="show only providers with an inventory of a class; may be repeated",
        )
        parser.add_argument(
            "--trait",
            action="append",
            default=[],
            metavar="NAME",
            help="show only providers with a trait; may be repeated",
        )
        parser.add_argument(
            "--load",
            type=natural,
            metavar="PERCENT",
            help="show only providers with at least this percentage of some class used",
        )
        for part in SHOWN_PARTS:
            when = "" if part is CONDITIONS else " if trees are named"
            parser.add_argument(
                f"--{part.name}",
                action=argparse.BooleanOptionalAction,
                help=f"show {part.name} (default: yes{when})",
            )
        parser.add_argument(
            "--inventories", action="store_true", help="also show total, reserved and ratio"
        )

    def answer(self, options: argparse.Namespace) -> Result:
        with self.client(options) as client:
            children, contents_by_uuid = _read_trees(client, options)
            has_aggregates = any(
                AGGREGATES.value_in(contents.values) for contents in contents_by_uuid.values()
            )
            names = AggregateNames.read(client) if has_aggregates else NO_NAMES
        parts = [
            part
            for part in SHOWN_PARTS
            if any(part.name in contents.values for contents in contents_by_uuid.values())
        ]
        columns = (
            *("Name", "UUID", "Root", "Depth"),
            *(part.name.title() for part in (INVENTORIES, *parts)),
        )
        rows = [
            (
                Cell(row["name"], partial(_indented, depth)),
                row["uuid"],
                row.get("root_provider_uuid"),
                depth,
                *_cells(contents_by_uuid.get(row["uuid"]), parts, options, names),
            )
            for depth, row in _preorder(children)
        ]
        if not children:
            none = "No provider matches." if _is_filtered(options) else "There are no providers."
            return Result(columns, (), [], notes=[none])
        style = _Style(options.classes, with_fields=options.inventories, names=names)
        return Result(
            columns,
            rows,
            [_document(row, contents_by_uuid, children) for row in children[None]],
            Group(*_pictures(children, contents_by_uuid, style)),
        )


def _indented(depth: int, name: str) -> list[str]:
    return ["  " * depth + name]


def _preorder(children: Mapping[str | None, Sequence[Row]]) -> Iterator[tuple[int, Row]]:
    # Not by recursion: a tree may be deeper than Python's stack.
    stack = [(0, row) for row in reversed(children.get(None, ()))]
    while stack:
        depth, row = stack.pop()
        yield depth, row
        stack += [(depth + 1, child) for child in reversed(children.get(row["uuid"], ()))]


def _cells(
    contents: Contents | None,
    parts: Sequence[ListedPart[Any]],
    options: argparse.Namespace,
    names: AggregateNames,
) -> Iterator[Cell]:
    """Yield the cells of a provider: its inventories, then its other parts."""
    values = {} if contents is None else contents.values
    stock = {} if contents is None else _stock(contents, options.classes)
    document = {} if contents is None else contents.document()[INVENTORIES.name]
    yield Cell(
        {name: document[name] for name in stock},
        lambda _: [
            f"{name} {part.used}/{part.capacity}{_fields(part) if options.inventories else ''}"
            for name, part in stock.items()
        ],
    )
    for part in parts:
        value = part.or_empty(values)
        texts = names.all_shown(value) if part is AGGREGATES else part.texts(value)
        yield Cell(part.written(value), partial(_constant, texts))


def _constant(texts: list[str], _value: Any) -> list[str]:
    return texts


def _read_trees(
    client: Client, options: argparse.Namespace
) -> tuple[dict[str | None, list[Row]], dict[str, Contents]]:
    """Return the providers to show, by parent, and the contents of those that pass, by uuid."""
    choices = {part: getattr(options, part.name) for part in SHOWN_PARTS}
    wanted = [
        part
        for part, choice in choices.items()
        if (options.roots or part is CONDITIONS if choice is None else choice)
    ]
    rows = _within(_providers(client, options.roots), options.depth)
    chosen = _with_traits(client, rows, options.trait)
    with shown_progress() as report:
        every = read_contents(client, chosen, wanted, report)
    named = [row["uuid"] for row in rows if not row.get("parent_provider_uuid")]
    held = held_in(client, named if options.roots else ())
    every = {uuid: contents.with_held(held.get(uuid, {})) for uuid, contents in every.items()}
    kept = {uuid: contents for uuid, contents in every.items() if _is_shown(contents, options)}
    shown = list(with_ancestors(rows, set(kept))) if _is_filtered(options) else rows
    return children_of(shown), kept


def show_trees(out: Printer, rows: Sequence[Row], contents: Mapping[str, Contents]) -> None:
    """Print providers as trees, with how full they are."""
    for tree in _pictures(children_of(rows), contents, _Style(())):
        out.print(tree)


@dataclass(frozen=True, slots=True)
class _Style:
    """The shown parts of a provider.

    Attributes:
        classes: Only these; all if empty.
        with_fields: Whether total, reserved and ratio are.
        names: The names of aggregates.
    """

    classes: Sequence[str]
    with_fields: bool = False
    names: AggregateNames = NO_NAMES


def _pictures(
    children: Mapping[str | None, Sequence[Row]],
    contents_by_uuid: Mapping[str, Contents],
    style: _Style,
) -> Iterator[Tree]:
    for root in children.get(None, []):
        tree = Tree(_label(root, contents_by_uuid, style))
        # Not by recursion: a tree may be deeper than Python's stack.
        stack = [(tree, root)]
        while stack:
            branch, parent = stack.pop()
            stack += [
                (branch.add(_label(row, contents_by_uuid, style)), row)
                for row in children.get(parent["uuid"], [])
            ]
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
    known = client.providers(required=",".join(traits))
    wanted = {row["uuid"] for row in known}
    return [row for row in rows if row["uuid"] in wanted]


def _is_filtered(options: argparse.Namespace) -> bool:
    return bool(options.classes or options.trait or options.load is not None)


def _is_shown(contents: Contents, options: argparse.Namespace) -> bool:
    stock = _stock(contents, options.classes)
    if options.classes and not stock:
        return False
    return options.load is None or any(part.load >= options.load for part in stock.values())


def _stock(contents: Contents, classes: Sequence[str]) -> dict[str, Stock]:
    return {name: part for name, part in contents.stock.items() if not classes or name in classes}


def _document(
    row: Row,
    contents_by_uuid: Mapping[str, Contents],
    children: Mapping[str | None, Sequence[Row]],
) -> dict[str, Any]:
    uuid = row["uuid"]
    document = (
        contents_by_uuid[uuid].document()
        if uuid in contents_by_uuid
        else {"uuid": uuid, "name": row["name"]}
    )
    below = [_document(child, contents_by_uuid, children) for child in children.get(uuid, [])]
    return {**document, "children": below}


def _label(row: Row, contents_by_uuid: Mapping[str, Contents], style: _Style) -> Line:
    return lines(_lines(row, contents_by_uuid.get(row["uuid"]), style))


def _lines(row: Row, contents: Contents | None, style: _Style) -> Iterator[Line]:
    yield line((row["name"], "bold"), (f" {row['uuid']}", "dim"))
    if contents is None:
        return
    for part in SHOWN_PARTS:
        for words in _words_of(part, contents, style.names):
            yield line(f"  {words}", style="cyan" if part is TRAITS else "")
    for name, stock in _stock(contents, style.classes).items():
        held = sum(some.amount for some in stock.held)
        drawn = bar(stock.used, stock.capacity, held=held, width=20)
        full = f"  {name} {drawn} {stock.used}/{stock.capacity}"
        yield line(full, (_fields(stock) if style.with_fields else "", "dim"))
        for some in stock.held:
            yield line(f"    {some.in_words()}", style="dim")
        for consumer in stock.consumers:
            yield line(f"    {consumer.in_words()}", style="dim")


def _words_of(part: ListedPart[Any], contents: Contents, names: AggregateNames) -> list[str]:
    """Return what a provider has of a part, in words, with the names of aggregates."""
    if part is not AGGREGATES:
        return part.words(part.or_empty(contents.values))
    return [f"{part.single} {text}" for text in names.all_shown(part.or_empty(contents.values))]


def _fields(part: Stock) -> str:
    fields = part.fields
    return (
        f" (total {fields['total']}, reserved {fields['reserved']}, ratio "
        f"{fields['allocation_ratio']})"
    )
