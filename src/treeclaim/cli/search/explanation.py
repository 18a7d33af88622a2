# SPDX-License-Identifier: Apache-2.0
"""An explanation for people: the funnel as bars, the nearest trees and what rules them out, and the advice."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.tree import Tree

from treeclaim.cli.printing import Line, bar, line, lines
from treeclaim.cli.query_arguments import in_words
from treeclaim.client import CandidateQuery, Client
from treeclaim.client.aggregates import AggregateNames, shown_aggregate
from treeclaim.client.states import read_rows
from treeclaim.model.inventory import MAXIMUM_INTEGER
from treeclaim.model.parts import AGGREGATES, INVENTORIES, TRAITS

_MOST_TRAITS = 12
"""Traits shown of a provider that lacks some: of real hosts there are hundreds."""

_WITHOUT = re.compile(r"Without (resources[^=]*)=(\S+) ")


Limits = Mapping[str, Any]
"""A provider with its inventories, traits and aggregates, as GET /treeclaim/providers has it."""


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
        limits: The limits of the providers that it names, by uuid; may be incomplete.
        names: The names of aggregates.
    """
    if not answer["trees"]["considered"]:
        return line("There are no providers; 'treeclaim load' creates providers.", style="red")
    parts: list[RenderableType] = [
        _verdict(answer),
        line(in_words(query), style="dim"),
        funnel_table(answer, names),
    ]
    if answer["nearest"]:
        parts.append(nearest_trees(answer["nearest"], limits, names))
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


def funnel_table(answer: Mapping[str, Any], names: AggregateNames) -> Table:
    """Return what rules trees out, step by step, with bars."""
    table = Table(title="What rules out trees", title_justify="left", box=None, show_header=False)
    considered = answer["trees"]["considered"]
    table.add_row("", "all trees", bar(considered, considered), str(considered))
    for step in answer["funnel"]:
        table.add_row(
            _group(step["group"]),
            f"{step['reason']} {_detail(step['detail'], names)}",
            bar(step["trees_after"], considered),
            f"{step['trees_before']} → {step['trees_after']}",
        )
    return table


def _group(suffix: str | None) -> str:
    return "" if suffix is None else suffix or "(unsuffixed)"


def _detail(detail: Mapping[str, Any], names: AggregateNames) -> str:
    def words(name: str, value: Any) -> str:
        values = value if isinstance(value, list) else [value]
        if name in (AGGREGATES.name, AGGREGATES.single):
            values = [shown_aggregate(names, uuid) for uuid in values]
        return ",".join(map(str, values))

    return " ".join(f"{name}={words(name, value)}" for name, value in detail.items())


def nearest_trees(
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
            words = f"{group} {blocked['reason']} {_detail(blocked['detail'], names)}".strip()
            leaf = branch.add(words)
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
    provider_limits = limits.get(provider["uuid"])
    if provider_limits is None:
        return
    inventory = provider_limits[INVENTORIES.name].get(name)
    if inventory is None:
        yield f"  has no inventory of {name}"
    elif blocked["reason"] in ("capacity", "amount_unit", "combined_capacity"):
        yield f"  {limits_in_words(inventory)}"
        nearest = nearest_amount(inventory, free, requested)
        if nearest is None:
            yield "  no amount would fit now"
        elif nearest != requested:
            yield f"  nearest amount that would fit: {nearest}"
    if blocked["reason"].startswith(("trait", "root_trait")):
        yield f"  its traits: {_some_of(provider_limits[TRAITS.name])}"
    if "member_of" in blocked["reason"]:
        shown = (shown_aggregate(names, uuid) for uuid in provider_limits[AGGREGATES.name])
        yield f"  its aggregates: {_some_of(shown)}"


def _some_of(names: Iterable[str]) -> str:
    ordered = sorted(names)
    remark = f" and {len(ordered) - _MOST_TRAITS} more" if len(ordered) > _MOST_TRAITS else ""
    return (", ".join(ordered[:_MOST_TRAITS]) + remark) or "none"


def limits_of(client: Client, answer: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Read the limits of all providers that an explanation names, by uuid."""
    named = {
        provider["uuid"]
        for tree in answer["nearest"]
        for blocked in tree["blocked_by"]
        for provider in blocked["providers"]
    }
    return read_rows(client, sorted(named), (INVENTORIES.name, TRAITS.name, AGGREGATES.name))


def limits_in_words(inventory: Mapping[str, Any]) -> str:
    """Return the limits of an inventory on how much can be taken at once."""
    words = [f"total {inventory['total']}"]
    if inventory["reserved"]:
        words.append(f"reserved {inventory['reserved']}")
    if inventory["allocation_ratio"] != 1.0:
        words.append(f"ratio {inventory['allocation_ratio']}")
    words.append(f"min_unit {inventory['min_unit']}")
    if inventory["max_unit"] != MAXIMUM_INTEGER:
        words.append(f"max_unit {inventory['max_unit']}")
    words.append(f"step_size {inventory['step_size']}")
    return ", ".join(words)


def nearest_amount(inventory: Mapping[str, Any], free: int, requested: int) -> int | None:
    """Return the amount nearest to what was requested that an inventory would give.

    Returns:
        The amount, the lower of two that are equally near; None if it gives none.
    """
    step: int = inventory["step_size"]
    most: int = min(inventory["max_unit"], free) // step * step
    least: int = -(-max(inventory["min_unit"], 1) // step) * step
    if least > most:
        return None
    below = min(max(requested // step * step, least), most)
    above = min(max(below + step, least), most)
    return above if above - requested < requested - below else below
