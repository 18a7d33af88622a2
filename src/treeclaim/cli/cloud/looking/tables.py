# SPDX-License-Identifier: Apache-2.0
"""Candidates, inventories and usage as tables for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from treeclaim.cli.cloud.looking.contents import Contents
from treeclaim.cli.printing import lines
from treeclaim.client.requests import bodies

_BAR = 20


def candidate_table(
    title: str, query: str, answer: Mapping[str, Any], names: Mapping[str, str]
) -> Table:
    """Return a table with a row for each candidate."""
    table = Table(title=title, caption=f"?{query}", title_justify="left", caption_justify="left")
    scores = answer.get("scores")
    table.add_column("#", justify="right")
    if scores:
        table.add_column("score", justify="right")
    table.add_column("takes")
    table.add_column("groups")
    for number, candidate in enumerate(answer["allocation_requests"], 1):
        taken = [
            f"{names.get(uuid, uuid)}: {amounts_in_words(resources)}"
            for uuid, resources in bodies.by_provider(candidate["allocations"]).items()
        ]
        groups = [
            f"{suffix or '(unsuffixed)'} → {', '.join(names.get(uuid, uuid) for uuid in providers)}"
            for suffix, providers in candidate.get("mappings", {}).items()
        ]
        first = [str(number), *([f"{scores[number - 1]:.6f}"] if scores else [])]
        table.add_row(*first, lines(taken), lines(groups))
    if not answer["allocation_requests"]:
        table.add_row("", "no candidate", "")
    return table


def amounts_in_words(resources: Mapping[str, int]) -> str:
    """Return amounts, such as `2 VCPU, 512 MEMORY_MB`."""
    return ", ".join(f"{amount} {name}" for name, amount in resources.items())


def usage_table(title: str, providers: Sequence[Contents]) -> Table:
    """Return a table of how full some providers are, with a bar for each inventory."""
    table = Table("provider", "class", title=title, title_justify="left")
    table.add_column("used", justify="right")
    table.add_column("capacity", justify="right")
    table.add_column("")
    for provider in providers:
        for name, part in provider.stock.items():
            full = bar(part.used, part.capacity)
            table.add_row(provider.row["name"], name, str(part.used), str(part.capacity), full)
    return table


def stock_table(provider: Contents) -> Table:
    """Return a table of a provider's inventories with all their fields."""
    fields = ("total", "reserved", "allocation_ratio", "min_unit", "max_unit", "step_size")
    table = Table(title="inventories", title_justify="left")
    table.add_column("class")
    for column in ("used", "capacity", *fields):
        table.add_column(column, justify="right")
    for name, part in provider.stock.items():
        values = (str(part.fields[field]) for field in fields)
        table.add_row(name, str(part.used), str(part.capacity), *values)
    return table


def bar(used: int, capacity: int, held: int = 0) -> str:
    """Return a bar that is as full as an inventory; what is used shows from the first unit.

    The part that holds have is drawn separately, behind the rest.
    """
    filled = 0 if not used else max(1, min(_BAR, round(_BAR * used / max(capacity, 1))))
    kept = 0 if not held else max(1, min(filled, round(filled * held / used)))
    return "█" * (filled - kept) + "▒" * kept + "░" * (_BAR - filled)
