# SPDX-License-Identifier: Apache-2.0
"""Renders an explanation: the funnel as bars, the nearest trees, and the advice."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.tree import Tree

from treeclaim.cli.printing import Line, draw_bar, join_lines, make_line
from treeclaim.cli.query_arguments import format_query
from treeclaim.client import CandidateQuery, Client
from treeclaim.client.aggregates import AggregateNames, format_aggregate
from treeclaim.client.states import format_inventory, read_rows
from treeclaim.model.parts import AGGREGATES, INVENTORIES

_WITHOUT = re.compile(r"Without (resources[^=]*)=(\S+) ")


Inventories = Mapping[str, Any]
"""Inventories of a provider in GET /treeclaim/providers."""


def render_explanation(
    answer: Mapping[str, Any],
    query: CandidateQuery,
    limits: Mapping[str, Inventories],
    names: AggregateNames,
) -> RenderableType:
    """Render the explanation of a query (contract page 97, section 3); `limits` may lack deleted providers."""
    if not answer["trees"]["considered"]:
        return make_line(
            "There are no providers; 'treeclaim load' creates providers.", style="red"
        )
    parts: list[RenderableType] = [
        _format_verdict(answer),
        make_line(format_query(query), style="dim"),
        _make_funnel_table(answer, names),
    ]
    if answer["nearest"]:
        parts.append(_make_nearest_trees(answer["nearest"], limits, names))
    parts += [make_line(f"→ {advice}", style="bold") for advice in select_advice(answer, query)]
    return Group(*parts)


def select_advice(answer: Mapping[str, Any], query: CandidateQuery) -> list[str]:
    """Return the advice of an explanation, except advice that leads to an empty request."""

    def is_useful(advice: str) -> bool:
        match = _WITHOUT.match(advice)
        dropped_classes = set(match[2].split(",")) if match else set()
        return match is None or any(
            set(value.split(",")) - (dropped_classes if name == match[1] else set())
            for name, value in query.parameters
            if name.startswith("resources")
        )

    return list(filter(is_useful, answer["advice"]))


def _format_verdict(answer: Mapping[str, Any]) -> Line:
    trees = answer["trees"]
    if answer["feasible"]:
        return make_line(
            f"{trees['matching']} of {trees['considered']} trees match.", style="green"
        )
    ever = (
        "It would fit if nothing were allocated."
        if answer["fits_when_empty"]
        else "It would not fit even if nothing were allocated."
    )
    return make_line(f"None of {trees['considered']} trees matches. {ever}", style="red")


def _make_funnel_table(answer: Mapping[str, Any], names: AggregateNames) -> Table:
    table = Table(title="What rules out trees", title_justify="left", box=None, show_header=False)
    considered_count = answer["trees"]["considered"]
    table.add_row(
        "", "all trees", draw_bar(considered_count, considered_count), str(considered_count)
    )
    for step in answer["funnel"]:
        table.add_row(
            _format_group(step["group"]),
            _format_reason(step, names),
            draw_bar(step["trees_after"], considered_count),
            f"{step['trees_before']} → {step['trees_after']}",
        )
    return table


def format_funnel(explained: Mapping[str, Any], names: AggregateNames | None = None) -> list[str]:
    """Return the steps of the funnel, a line each; empty for an object without an explanation."""
    return [
        f"{_format_group(step['group'])} {_format_reason(step, names or {})}: "
        f"{step['trees_before']} → {step['trees_after']}".strip()
        for step in explained.get("explanation", {"funnel": ()})["funnel"]
    ]


def _format_group(suffix: str | None) -> str:
    return "" if suffix is None else suffix or "(unsuffixed)"


def _format_reason(step: Mapping[str, Any], names: AggregateNames) -> str:
    return f"{step['reason']} {_format_detail(step['detail'], names)}"


def _format_detail(detail: Mapping[str, Any], names: AggregateNames) -> str:
    def format_value(name: str, value: Any) -> str:
        values = value if isinstance(value, list) else [value]
        if name in (AGGREGATES.name, AGGREGATES.single):
            values = [format_aggregate(names, uuid) for uuid in values]
        return ",".join(map(str, values))

    return " ".join(f"{name}={format_value(name, value)}" for name, value in detail.items())


def _make_nearest_trees(
    trees: Sequence[Mapping[str, Any]],
    limits: Mapping[str, Inventories],
    names: AggregateNames,
) -> Tree:
    """Return the nearest trees, each with its blocking reasons and providers."""
    top = Tree("Nearest trees")
    for tree in trees:
        root = tree["root_provider"]
        branch = top.add(make_line(root["name"], (f" {root['uuid']}", "dim")))
        if not tree["blocked_by"]:
            branch.add("matches")
        for blocked in tree["blocked_by"]:
            group = _format_group(blocked["group"])
            leaf = branch.add(f"{group} {_format_reason(blocked, names)}".strip())
            for provider in blocked["providers"]:
                leaf.add(join_lines(_format_provider(provider, blocked, limits, names)))
    return top


def _format_provider(
    provider: Mapping[str, Any],
    blocked: Mapping[str, Any],
    limits: Mapping[str, Inventories],
    names: AggregateNames,
) -> Iterator[str]:
    """Yield the free amount of a provider, and its limits or missing attributes."""
    attributes = _format_detail(provider.get("attributes", {}), names)
    name = provider.get("resource_class")
    if name is None:
        yield f"{provider['name']}: {attributes or 'has none of these attributes'}"
        return
    free_amount, requested_amount = provider["free"], provider["requested"]
    yield f"{provider['name']}: {free_amount} {name} free, {requested_amount} requested"
    if "attributes" in provider:
        yield f"  {attributes or 'has none of these attributes'}"
    if provider["uuid"] not in limits:
        return
    inventory = limits[provider["uuid"]].get(name)
    if inventory is None:
        yield f"  has no inventory of {name}"
    elif blocked["reason"] in ("capacity", "amount_unit", "combined_capacity"):
        yield "  " + ", ".join(map(" ".join, format_inventory(inventory)))


def read_limits(client: Client, answer: Mapping[str, Any]) -> dict[str, Inventories]:
    """Read the inventories of all blocking providers in an explanation, by uuid."""
    uuids = {
        provider["uuid"]
        for tree in answer["nearest"]
        for blocked in tree["blocked_by"]
        for provider in blocked["providers"]
    }
    rows = read_rows(client, sorted(uuids), [INVENTORIES.name])
    return {uuid: row[INVENTORIES.name] for uuid, row in rows.items()}
