# SPDX-License-Identifier: Apache-2.0
"""`treeclaim tree`: provider trees, how full they are, and what else is asked for."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.tree import Tree

from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.looking.contents import (
    Contents,
    Stock,
    children_of,
    held_in,
    read_contents,
    with_ancestors,
)
from treeclaim.cli.cloud.progress import shown_progress
from treeclaim.cli.cloud.providers import Row, find_provider, providers_of_tree
from treeclaim.cli.output import natural, printer, say_document
from treeclaim.cli.printing import Line, Printer, bar, line, lines
from treeclaim.client import Client
from treeclaim.client.aggregates import NO_NAMES, AggregateNames
from treeclaim.client.versions import Need
from treeclaim.model.microversions import Feature
from treeclaim.model.parts import (
    AGGREGATES,
    CONDITIONS,
    LISTED_PARTS,
    SHOWN_PARTS,
    TRAITS,
    ListedPart,
    names_in_words,
)


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "tree",
        description="Show provider trees and how full they are: all of them, or those of the "
        f"providers that are named, then with {names_in_words(LISTED_PARTS)}.",
    )
    add_tree_options(command)
    finish(command, run, json="print JSON")


def add_tree_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say which trees are shown, and what of them."""
    command.add_argument(
        "roots", nargs="*", metavar="ROOT", help="uuid or name of any provider of a tree"
    )
    command.add_argument("--depth", type=natural, help="show only this many levels below")
    command.add_argument(
        "--class",
        dest="classes",
        action="append",
        default=[],
        metavar="NAME",
        help="show only providers with an inventory of a class; may be repeated",
    )
    command.add_argument(
        "--trait",
        action="append",
        default=[],
        metavar="NAME",
        help="show only providers with a trait; may be repeated",
    )
    command.add_argument(
        "--load",
        type=natural,
        metavar="PERCENT",
        help="show only providers with at least this percentage of some class used",
    )
    for part in SHOWN_PARTS:
        command.add_argument(
            f"--{part.name}",
            action=argparse.BooleanOptionalAction,
            help=f"show {part.name}; usual{'' if part is CONDITIONS else ' if trees are named'}",
        )
    command.add_argument(
        "--inventories", action="store_true", help="also show total, reserved and ratio"
    )


def run(options: argparse.Namespace) -> int:
    """Show some trees, or all."""
    with client_of(options) as client:
        children, kept = trees(client, options)
        shows = not options.json and any(
            AGGREGATES.value_in(contents.values) for contents in kept.values()
        )
        names = AggregateNames.read(client) if shows else NO_NAMES
    if options.json:
        say_document([_document(row, kept, children) for row in children.get(None, [])])
        return 0
    _print(children, kept, options, names)
    return 0


def trees(
    client: Client, options: argparse.Namespace
) -> tuple[dict[str | None, list[Row]], dict[str, Contents]]:
    """Return the providers to show, by parent, and the contents of those that pass, by uuid."""
    asked = {part: getattr(options, part.name) for part in SHOWN_PARTS}
    wanted = [
        part
        for part, is_asked in asked.items()
        if (options.roots or part is CONDITIONS if is_asked is None else is_asked)
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


def _print(
    children: Mapping[str | None, Sequence[Row]],
    kept: Mapping[str, Contents],
    options: argparse.Namespace,
    names: AggregateNames,
) -> None:
    out = printer()
    style = _Style(options.classes, with_fields=options.inventories, names=names)
    _print_trees(out, children, kept, style)
    if not children:
        out.print("No provider matches." if _is_filtered(options) else "There are no providers.")


def show_trees(out: Printer, rows: Sequence[Row], contents: Mapping[str, Contents]) -> None:
    """Print providers as trees, with how full they are."""
    _print_trees(out, children_of(rows), contents, _Style(()))


@dataclass(frozen=True, slots=True)
class _Style:
    """What of a provider is shown.

    Attributes:
        classes: Only these; all if empty.
        with_fields: Whether total, reserved and ratio are.
        names: The names of aggregates.
    """

    classes: Sequence[str]
    with_fields: bool = False
    names: AggregateNames = NO_NAMES


def _print_trees(
    out: Printer,
    children: Mapping[str | None, Sequence[Row]],
    kept: Mapping[str, Contents],
    style: _Style,
) -> None:
    for root in children.get(None, []):
        branch = Tree(_label(root, kept, style))
        # Not by recursion: a tree may be deeper than Python's stack.
        open_branches = [(branch, root)]
        while open_branches:
            above, parent = open_branches.pop()
            open_branches += [
                (above.add(_label(row, kept, style)), row)
                for row in children.get(parent["uuid"], [])
            ]
        out.print(branch)


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
    client.versions.require(Need("--trait", Feature.REQUIRED_FILTER))
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
    row: Row, kept: Mapping[str, Contents], children: Mapping[str | None, Sequence[Row]]
) -> dict[str, Any]:
    uuid = row["uuid"]
    document = kept[uuid].document() if uuid in kept else {"uuid": uuid, "name": row["name"]}
    below = [_document(child, kept, children) for child in children.get(uuid, [])]
    return {**document, "children": below}


def _label(row: Row, kept: Mapping[str, Contents], style: _Style) -> Line:
    return lines(_lines(row, kept.get(row["uuid"]), style))


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
