# SPDX-License-Identifier: Apache-2.0
"""An explanation for people: the funnel as bars, the nearest trees, and the advice."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

_BAR = 30


def explanation(told: Mapping[str, Any], query: str) -> RenderableType:
    """Return what to print for the document of contract page 97, section 3."""
    parts: list[RenderableType] = [_verdict(told), Text(f"?{query}", style="dim"), _funnel(told)]
    if told["nearest"]:
        parts.append(_nearest(told["nearest"]))
    parts += [Text(f"→ {one}", style="bold") for one in told["advice"]]
    return Group(*parts)


def _verdict(told: Mapping[str, Any]) -> Text:
    trees = told["trees"]
    if told["feasible"]:
        return Text(f"{trees['matching']} of {trees['considered']} trees match.", style="green")
    ever = (
        "It would fit if nothing were allocated."
        if told["fits_when_empty"]
        else "It would not fit even if nothing were allocated."
    )
    return Text(f"None of {trees['considered']} trees matches. {ever}", style="red")


def _funnel(told: Mapping[str, Any]) -> Table:
    table = Table(title="What rules trees out", title_justify="left", box=None, show_header=False)
    considered = told["trees"]["considered"]
    table.add_row("", "all trees", _bar(considered, considered), str(considered))
    for step in told["funnel"]:
        table.add_row(
            _group(step["group"]),
            f"{step['reason']} {_detail(step['detail'])}",
            _bar(step["trees_after"], considered),
            f"{step['trees_before']} → {step['trees_after']}",
        )
    return table


def _bar(part: int, whole: int) -> str:
    filled = 0 if not part else max(1, round(_BAR * part / max(whole, 1)))
    return "█" * filled + "░" * (_BAR - filled)


def _group(suffix: str | None) -> str:
    return "" if suffix is None else suffix or "(unsuffixed)"


def _detail(detail: Mapping[str, Any]) -> str:
    words = [
        f"{name}={','.join(value) if isinstance(value, list) else value}"
        for name, value in detail.items()
    ]
    return escape(" ".join(words))


def _nearest(trees: Sequence[Mapping[str, Any]]) -> Tree:
    top = Tree("Nearest trees")
    for one in trees:
        root = one["root_provider"]
        branch = top.add(f"{escape(root['name'])} [dim]{root['uuid']}[/]")
        if not one["blocked_by"]:
            branch.add("matches")
        for blocked in one["blocked_by"]:
            group = _group(blocked["group"])
            leaf = branch.add(f"{group} {blocked['reason']} {_detail(blocked['detail'])}".strip())
            for provider in blocked["providers"]:
                leaf.add(
                    f"{escape(provider['name'])}: {provider['free']} {provider['resource_class']} "
                    f"free, {provider['requested']} requested"
                )
    return top
