# SPDX-License-Identifier: Apache-2.0
"""An explanation for people: the funnel as bars, the nearest trees and what rules them out, and the advice."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.tree import Tree

from treeclaim.cli.printing import Line, bar, line, lines
from treeclaim.cli.query_arguments import in_words
from treeclaim.client import CandidateQuery, Client
from treeclaim.client.aggregates import AggregateNames, shown_aggregate
from treeclaim.client.states import fields_in_words, read_rows
from treeclaim.model.parts import AGGREGATES, INVENTORIES

_WITHOUT = re.compile(r"Without (resources[^=]*)=(\S+) ")


Limits = Mapping[str, Any]
"""Inventories of a provider, as GET /treeclaim/providers has them."""


def explanation(
    answer: Mapping[str, Any],
    query: CandidateQuery,
    limits: Mapping[str, Limits],
    names: AggregateNames,
) -> RenderableType:
    """Return what to print for the document of contract page 97, section 3.

    Args:
        answer: The document.
        query: The query that it explains.
        limits: Inventories of the providers that it names, by uuid; may be incomplete.
        names: The names of aggregates.
    """
    if not answer["trees"]["considered"]:
        return line("There are no providers; 'treeclaim load' creates providers.", style="red")
    parts: list[RenderableType] = [
        _verdict(answer),
        line(in_words(query), style="dim"),
        _funnel_table(answer, names),
    ]
    if answer["nearest"]:
        parts.append(_nearest_trees(answer["nearest"], limits, names))
    parts += [line(f"→ {advice}", style="bold") for advice in useful_advice(answer, query)]
    return Group(*parts)


def useful_advice(answer: Mapping[str, Any], query: CandidateQuery) -> list[str]:
    """Return the advice of an explanation, except where following it would leave an empty request."""

    def is_useful(advice: str) -> bool:
        match = _WITHOUT.match(advice)
        dropped = set(match[2].split(",")) if match else set()
        return match is None or any(
            set(value.split(",")) - (dropped if name == match[1] else set())
            for name, value in query.parameters
            if name.startswith("resources")
        )

    return list(filter(is_useful, answer["advice"]))


def _verdict(answer: Mapping[str, Any]) -> Line:
    trees = answer["trees"]
    if answer["feasible"]:
        return line(f"{trees['matching']} of {trees['considered']} trees match.", style="green")
    ever = (
        "It would fit if nothing were allocated."
        if answer["fits_when_empty"]
        else "It would not fit even if nothing were allocated."
    )
    return line(f"None of {trees['considered']} trees matches. {ever}", style="red")


def _funnel_table(answer: Mapping[str, Any], names: AggregateNames) -> Table:
    """Return what rules trees out, step by step, with bars."""
    table = Table(title="What rules out trees", title_justify="left", box=None, show_header=False)
    considered = answer["trees"]["considered"]
    table.add_row("", "all trees", bar(considered, considered), str(considered))
    for step in answer["funnel"]:
        table.add_row(
            _group(step["group"]),
            _reason_in_words(step, names),
            bar(step["trees_after"], considered),
            f"{step['trees_before']} → {step['trees_after']}",
        )
    return table


def funnel_in_words(
    explained: Mapping[str, Any], names: AggregateNames | None = None
) -> list[str]:
    """Return the steps that rule trees out, a line each; none for an object without an explanation."""
    return [
        f"{_group(step['group'])} {_reason_in_words(step, names or {})}: "
        f"{step['trees_before']} → {step['trees_after']}".strip()
        for step in explained.get("explanation", {"funnel": ()})["funnel"]
    ]


def _group(suffix: str | None) -> str:
    return "" if suffix is None else suffix or "(unsuffixed)"


def _reason_in_words(step: Mapping[str, Any], names: AggregateNames) -> str:
    """Return the reason of a step of the funnel, or of what blocks a tree, with its details."""
    return f"{step['reason']} {_detail(step['detail'], names)}"


def _detail(detail: Mapping[str, Any], names: AggregateNames) -> str:
    def words(name: str, value: Any) -> str:
        values = value if isinstance(value, list) else [value]
        if name in (AGGREGATES.name, AGGREGATES.single):
            values = [shown_aggregate(names, uuid) for uuid in values]
        return ",".join(map(str, values))

    return " ".join(f"{name}={words(name, value)}" for name, value in detail.items())


def _nearest_trees(
    trees: Sequence[Mapping[str, Any]],
    limits: Mapping[str, Limits],
    names: AggregateNames,
) -> Tree:
    """Return the nearest trees of an explanation, with what blocks each."""
    top = Tree("Nearest trees")
    for tree in trees:
        root = tree["root_provider"]
        branch = top.add(line(root["name"], (f" {root['uuid']}", "dim")))
        if not tree["blocked_by"]:
            branch.add("matches")
        for blocked in tree["blocked_by"]:
            group = _group(blocked["group"])
            leaf = branch.add(f"{group} {_reason_in_words(blocked, names)}".strip())
            for provider in blocked["providers"]:
                leaf.add(lines(_provider(provider, blocked, limits, names)))
    return top


def _provider(
    provider: Mapping[str, Any],
    blocked: Mapping[str, Any],
    limits: Mapping[str, Limits],
    names: AggregateNames,
) -> Iterator[str]:
    """Yield lines about a provider: how much is free, what limits it, what it lacks."""
    attributes = _detail(provider.get("attributes", {}), names)
    name = provider.get("resource_class")
    if name is None:
        yield f"{provider['name']}: {attributes or 'has none of these attributes'}"
        return
    free, requested = provider["free"], provider["requested"]
    yield f"{provider['name']}: {free} {name} free, {requested} requested"
    if "attributes" in provider:
        yield f"  {attributes or 'has none of these attributes'}"
    if provider["uuid"] not in limits:
        return
    inventory = limits[provider["uuid"]].get(name)
    if inventory is None:
        yield f"  has no inventory of {name}"
    elif blocked["reason"] in ("capacity", "amount_unit", "combined_capacity"):
        yield "  " + ", ".join(map(" ".join, fields_in_words(inventory)))


def limits_of(client: Client, answer: Mapping[str, Any]) -> dict[str, Limits]:
    """Read the inventories of all providers that an explanation names, by uuid."""
    named = {
        provider["uuid"]
        for tree in answer["nearest"]
        for blocked in tree["blocked_by"]
        for provider in blocked["providers"]
    }
    rows = read_rows(client, sorted(named), [INVENTORIES.name])
    return {uuid: row[INVENTORIES.name] for uuid, row in rows.items()}
