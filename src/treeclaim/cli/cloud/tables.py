# SPDX-License-Identifier: Apache-2.0
"""Candidates and usage as tables for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from treeclaim.client import Client

_BAR = 20


def candidate_table(
    title: str, query: str, answer: Mapping[str, Any], names: Mapping[str, str]
) -> Table:
    """Return a table with a row for each candidate.

    Args:
        title: The question in words.
        query: As it was asked.
        answer: The body of the response.
        names: Provider names by uuid.
    """
    table = Table(title=title, caption=f"?{query}", title_justify="left", caption_justify="left")
    table.add_column("#", justify="right")
    table.add_column("takes")
    table.add_column("groups")
    for number, candidate in enumerate(answer["allocation_requests"], 1):
        taken = [
            f"{names.get(uuid, uuid)}: {_amounts(given['resources'])}"
            for uuid, given in candidate["allocations"].items()
        ]
        groups = [
            f"{suffix or '(unsuffixed)'} → {', '.join(names.get(one, one) for one in providers)}"
            for suffix, providers in candidate.get("mappings", {}).items()
        ]
        table.add_row(str(number), "\n".join(taken), "\n".join(groups))
    if not answer["allocation_requests"]:
        table.add_row("", "no candidate", "")
    return table


def _amounts(resources: Mapping[str, int]) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in resources.items())


def usage_table(
    title: str, client: Client, providers: Sequence[str], names: Mapping[str, str]
) -> Table:
    """Return a table of how full some providers are, with a bar for each inventory."""
    table = Table(title=title, title_justify="left")
    for column in ("provider", "class"):
        table.add_column(column)
    table.add_column("used", justify="right")
    table.add_column("capacity", justify="right")
    table.add_column("")
    for uuid in providers:
        used = client.get(f"/resource_providers/{uuid}/usages")["usages"]
        stock = client.get(f"/resource_providers/{uuid}/inventories")["inventories"]
        for name, one in stock.items():
            capacity = int((one["total"] - one["reserved"]) * one["allocation_ratio"])
            table.add_row(
                names.get(uuid, uuid),
                name,
                str(used[name]),
                str(capacity),
                bar(used[name], capacity),
            )
    return table


def bar(used: int, capacity: int) -> str:
    """Return a bar that is as full as an inventory; what is used shows from the first unit."""
    filled = 0 if not used else max(1, min(_BAR, round(_BAR * used / max(capacity, 1))))
    return "█" * filled + "░" * (_BAR - filled)
