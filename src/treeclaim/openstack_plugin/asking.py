# SPDX-License-Identifier: Apache-2.0
"""`openstack placement candidates`, `explain`, `fit` and `tree`."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from osc_lib.command import command

from treeclaim.cli.cloud.asking.explanation import (
    funnel_table,
    limits_of,
    nearest_trees,
    useful_advice,
)
from treeclaim.cli.cloud.asking.question import query_of_options
from treeclaim.cli.cloud.asking.questions import (
    add_candidate_options,
    add_explain_options,
    add_fit_options,
    candidates,
    counted,
    explained,
    requests_of,
)
from treeclaim.cli.cloud.looking.contents import Contents
from treeclaim.cli.cloud.looking.tree import add_tree_options, trees
from treeclaim.cli.cloud.providers import Row, names_in
from treeclaim.cli.printing import amounts_in_words
from treeclaim.client.aggregates import NO_NAMES, AggregateNames
from treeclaim.client.requests import bodies
from treeclaim.model.parts import AGGREGATES, INVENTORIES, SHOWN_PARTS, ListedPart
from treeclaim.openstack_plugin.talking import Cell, Fields, Rows, Talking, drawn, lines


class ListCandidates(Talking, command.Lister):
    """List what can satisfy a request, best first with --order-by."""

    add_options = staticmethod(add_candidate_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Ask."""
        query = query_of_options(parsed_args, self.compute)
        _, answer = candidates(self.client, query, parsed_args)
        names = names_in(self.client, answer)
        scores = answer.get("scores")
        columns = ("Candidate", *(("Score",) if scores else ()), "Takes", "Groups")
        return columns, (
            (number, *((scores[number - 1],) if scores else ()), *_candidate(candidate, names))
            for number, candidate in enumerate(answer["allocation_requests"], 1)
        )


def _candidate(candidate: Mapping[str, Any], names: Mapping[str, str]) -> tuple[Cell, Cell]:
    taken = [
        {"uuid": uuid, "name": names.get(uuid, uuid), "resources": dict(resources)}
        for uuid, resources in bodies.by_provider(candidate["allocations"]).items()
    ]
    groups = {
        suffix: [{"uuid": uuid, "name": names.get(uuid, uuid)} for uuid in providers]
        for suffix, providers in candidate.get("mappings", {}).items()
    }
    return Cell(taken, _taken_in_words), Cell(groups, _groups_in_words)


def _taken_in_words(taken: list[dict[str, Any]]) -> list[str]:
    return [f"{part['name']}: {amounts_in_words(part['resources'])}" for part in taken]


def _groups_in_words(groups: Mapping[str, list[dict[str, str]]]) -> list[str]:
    return [
        f"{suffix or '(unsuffixed)'}: {', '.join(provider['name'] for provider in providers)}"
        for suffix, providers in groups.items()
    ]


class Explain(Talking, command.ShowOne):
    """Show why a request has no candidate, or which trees match."""

    add_options = staticmethod(add_explain_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Fields:
        """Ask why."""
        query = query_of_options(parsed_args, self.compute)
        query, told = explained(self.client, query, parsed_args)
        limits, names = limits_of(self.client, told), AggregateNames.read(self.client)
        fields = {
            "query": str(query),
            "feasible": told["feasible"],
            "fits_when_empty": told["fits_when_empty"],
            "trees": Cell(
                told["trees"],
                lambda trees: [f"{trees['matching']} of {trees['considered']} match"],
            ),
            "funnel": drawn(told["funnel"], funnel_table(told, names)),
            "nearest": drawn(told["nearest"], nearest_trees(told["nearest"], limits, names)),
            "advice": lines(useful_advice(told, query)),
        }
        return tuple(fields), tuple(fields.values())


class Fit(Talking, command.Lister):
    """List how many consumers of each request still fit."""

    add_options = staticmethod(add_fit_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        """Count."""
        requests = requests_of(parsed_args, self.compute)
        capacities = counted(self.client, requests, parsed_args)
        columns = ("Request", "Fits", "At Most", "When Empty", "Complete")
        parts = ("Parts",) if parsed_args.domains else ()
        names = AggregateNames.read(self.client) if parts else NO_NAMES
        return (*columns, *parts), (
            (
                name,
                capacity.fits,
                capacity.at_most,
                capacity.when_empty,
                capacity.is_complete,
                *(
                    (Cell(dict(capacity.domains), partial(_parts_in_words, names)),)
                    if parts
                    else ()
                ),
            )
            for name, capacity in capacities.items()
        )


def _parts_in_words(names: AggregateNames, parts: Mapping[str, int]) -> list[str]:
    return [f"{names.shown(name)}: {count}" for name, count in parts.items()]


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
