# SPDX-License-Identifier: Apache-2.0
"""`treeclaim tree`: provider trees with traits, aggregates, and how full they are."""

import argparse
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from treeclaim.cli.cloud.endpoint import add_endpoint_options, client_of
from treeclaim.cli.cloud.tables import bar
from treeclaim.cli.output import CommandError
from treeclaim.client import Client

Provider = Mapping[str, Any]


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser("tree", help="show provider trees")
    command.add_argument(
        "root", nargs="?", metavar="ROOT", help="uuid or name of any provider of one tree"
    )
    add_endpoint_options(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show one tree, or all."""
    console = Console()
    with client_of(options) as client:
        providers = _providers(client, options.root)
        children: dict[str | None, list[Provider]] = {}
        for one in providers:
            children.setdefault(one.get("parent_provider_uuid"), []).append(one)
        for root in children.get(None, []):
            shown = Tree(_label(client, root))
            _add_children(client, shown, root, children)
            console.print(shown)
    return 0


def _providers(client: Client, name: str | None) -> Sequence[Provider]:
    """Return all providers, or those of one tree: a cloud has far more than anybody looks at."""
    if name is None:
        return client.providers()
    found = client.providers(uuid=name) if _is_uuid(name) else []
    found = found or client.providers(name=name)
    if not found:
        raise CommandError(f"there is no provider {name}")
    if client.versions.minor < _TREES:
        return found
    return client.providers(in_tree=found[0]["uuid"])


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _add_children(
    client: Client, shown: Tree, parent: Provider, children: Mapping[str | None, list[Provider]]
) -> None:
    for one in children.get(parent["uuid"], []):
        _add_children(client, shown.add(_label(client, one)), one, children)


def _label(client: Client, provider: Provider) -> str:
    path = f"/resource_providers/{provider['uuid']}"
    lines = [f"[bold]{escape(provider['name'])}[/] [dim]{provider['uuid']}[/]"]
    if client.versions.minor >= _TRAITS:
        lines += [f"  [cyan]{one}[/]" for one in client.get(f"{path}/traits")["traits"]]
    if client.versions.minor >= _AGGREGATES:
        found = client.get(f"{path}/aggregates")["aggregates"]
        lines += [f"  aggregate {one}" for one in found]
    used = client.get(f"{path}/usages")["usages"]
    for name, one in client.get(f"{path}/inventories")["inventories"].items():
        capacity = int((one["total"] - one["reserved"]) * one["allocation_ratio"])
        full = bar(used.get(name, 0), capacity)
        lines.append(f"  {name} {full} {used.get(name, 0)}/{capacity}")
    return "\n".join(lines)


_AGGREGATES, _TRAITS, _TREES = 1, 6, 14
"""Minor versions from which providers have them."""
