# SPDX-License-Identifier: Apache-2.0
"""`openstack placement tree`."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from osc_lib.command import command

from treeclaim.cli.cloud.looking.contents import Contents
from treeclaim.cli.cloud.looking.tree import add_tree_options, trees
from treeclaim.cli.cloud.providers import Row
from treeclaim.client.aggregates import AggregateNames
from treeclaim.model.parts import AGGREGATES, INVENTORIES, SHOWN_PARTS, ListedPart
from treeclaim.openstack_plugin.talking import Cell, Rows, Talking

_INDENT = "  "


class ListTrees(Talking, command.Lister):
    """List provider trees, and how full they are."""

    add_options = staticmethod(add_tree_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Read the trees; each provider comes before those below it."""
        children, kept = trees(self.client, parsed_args)
        aggregates = AggregateNames.read(self.client)
        read = tuple(
            part
            for part in SHOWN_PARTS
            if any(part.name in contents.values for contents in kept.values())
        )
        names = (part.name.title() for part in (INVENTORIES, *read))
        columns = ("Name", "UUID", "Root", "Depth", *names)
        return columns, (
            (
                Cell(row["name"], lambda name, depth=depth: [_INDENT * depth + name]),  # type: ignore[misc]
                row["uuid"],
                row.get("root_provider_uuid"),
                depth,
                *_contents(kept.get(row["uuid"]), read, parsed_args, aggregates),
            )
            for depth, row in _preorder(children)
        )


def _preorder(children: Mapping[str | None, Sequence[Row]]) -> Iterator[tuple[int, Row]]:
    # Not by recursion: a tree may be deeper than Python's stack.
    open_rows = [(0, row) for row in reversed(children.get(None, ()))]
    while open_rows:
        depth, row = open_rows.pop()
        yield depth, row
        open_rows += [(depth + 1, child) for child in reversed(children.get(row["uuid"], ()))]


def _contents(
    contents: Contents | None,
    read: Sequence[ListedPart[Any]],
    options: argparse.Namespace,
    names: AggregateNames,
) -> tuple[Cell, ...]:
    """Return the cells of a provider; one that is only above others that match has none."""
    stock = {} if contents is None else contents.document()[INVENTORIES.name]
    values = {} if contents is None else contents.values
    if options.classes:
        stock = {name: fields for name, fields in stock.items() if name in options.classes}
    words = _fields_in_words if options.inventories else _stock_in_words
    return Cell(stock, words), *(_cell(part, part.or_empty(values), names) for part in read)


def _cell(part: ListedPart[Any], value: Any, names: AggregateNames) -> Cell:
    texts = names.all_shown if part is AGGREGATES else part.texts
    return Cell(part.written(value), lambda _document: texts(value))


def _stock_in_words(stock: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [f"{name} {fields['used']}/{fields['capacity']}" for name, fields in stock.items()]


def _fields_in_words(stock: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        f"{name} {fields['used']}/{fields['capacity']} (total {fields['total']}, reserved "
        f"{fields['reserved']}, ratio {fields['allocation_ratio']})"
        for name, fields in stock.items()
    ]
