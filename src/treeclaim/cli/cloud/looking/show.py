# SPDX-License-Identifier: Apache-2.0
"""`treeclaim show`: everything about a provider or a consumer; `usage`: of a project; `watch`: what changes."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.looking.contents import Contents, read_contents
from treeclaim.cli.cloud.providers import Row, find_provider, providers_of_tree
from treeclaim.cli.output import CommandError, printer, say, say_document
from treeclaim.cli.printing import amounts_in_words, bar
from treeclaim.client import Client
from treeclaim.client.aggregates import AggregateNames
from treeclaim.client.requests import bodies
from treeclaim.client.transport import in_parallel
from treeclaim.client.versions import Need
from treeclaim.client.watching import Changes, watch
from treeclaim.model.microversions import Feature
from treeclaim.model.names import normalised_uuid
from treeclaim.model.parts import AGGREGATES, SHOWN_PARTS, Part

_MOST_CONSUMERS = 20
"""Consumers shown of a provider; --json has all."""

_COUNT = "consumer_count"

_PARTS = [part.word for part in Part]


def add_to(commands: Any) -> None:
    """Add the commands."""
    command = commands.add_parser("show")
    command.add_argument(
        "name",
        metavar="PROVIDER|CONSUMER",
        help="uuid or name of a provider, or a consumer's uuid",
    )
    finish(command, run, json="print JSON")
    usage = commands.add_parser("usage")
    usage.add_argument("--project", required=True, metavar="ID", help="id of the project")
    usage.add_argument("--user", metavar="ID", help="only what this user uses")
    finish(usage, _show_usage, json="print the server's document")
    watching = commands.add_parser("watch")
    watching.add_argument("--since", metavar="CURSOR", help="begin at a cursor instead of now")
    watching.add_argument(
        "--in-tree",
        action="append",
        default=[],
        metavar="PROVIDER",
        help="only the tree of a provider, by name or uuid; may be repeated",
    )
    finish(watching, _watch, json="print one JSON document per line")


def run(options: argparse.Namespace) -> int:
    """Show what has that name."""
    with client_of(options) as client:
        if normalised_uuid(options.name) and not client.providers(uuid=options.name):
            held = client.get(f"/allocations/{options.name}")
            if not held["allocations"]:
                raise CommandError(f"neither a provider nor a consumer is {options.name}")
            _show_consumer(client, options.name, held, as_json=options.json)
        else:
            _show_provider(client, find_provider(client, options.name), as_json=options.json)
    return 0


def _show_consumer(client: Client, uuid: str, held: dict[str, Any], *, as_json: bool) -> None:
    amounts = bodies.by_provider(held["allocations"])
    pages = in_parallel(lambda provider: client.providers(uuid=provider), sorted(amounts))
    names = {row["uuid"]: row["name"] for rows in pages for row in rows}
    if as_json:
        say_document({"consumer": uuid, "names": names, **held})
        return
    out = printer()
    for name, value in (
        ("consumer", uuid),
        ("project", held.get("project_id")),
        ("user", held.get("user_id")),
        ("type", held.get("consumer_type")),
        ("generation", held.get("consumer_generation")),
    ):
        if value is not None:
            out.print(f"{name}: {value}")
    table = Table("provider", "uuid", "amounts", title="holds", title_justify="left")
    for provider, resources in amounts.items():
        table.add_row(names.get(provider, "?"), provider, amounts_in_words(resources))
    out.print(table)


def _show_provider(client: Client, row: Row, *, as_json: bool) -> None:
    contents = read_contents(client, [row], SHOWN_PARTS, lambda *_progress: None).get(row["uuid"])
    if contents is None:
        raise CommandError(f"provider {row['name']!r} was deleted meanwhile")
    held = client.get(f"/resource_providers/{row['uuid']}/allocations")["allocations"]
    tree = {provider["uuid"]: provider for provider in providers_of_tree(client, row)}
    parent = tree.get(row.get("parent_provider_uuid") or "")
    children = sorted(
        provider["name"]
        for provider in tree.values()
        if provider.get("parent_provider_uuid") == row["uuid"]
    )
    if as_json:
        above = {"parent_provider_uuid": row.get("parent_provider_uuid")}
        say_document({**contents.document(), **above, "allocations": held})
        return
    names = AggregateNames.read(client)
    aggregates = ", ".join(names.all_shown(AGGREGATES.or_empty(contents.values)))
    out = printer()
    for name, value in (
        ("provider", f"{row['name']} {row['uuid']}"),
        ("generation", str(row["generation"])),
        ("parent", "none" if parent is None else f"{parent['name']} {parent['uuid']}"),
        ("children", ", ".join(children) or "none"),
        *(
            (
                part.name,
                (aggregates if part is AGGREGATES else ", ".join(contents.texts(part))) or "none",
            )
            for part in SHOWN_PARTS
        ),
    ):
        out.print(f"{name}: {value}")
    out.print(stock_table(contents) if contents.stock else "inventories: none")
    out.print(f"consumers: {len(held)}")
    for uuid in sorted(held)[:_MOST_CONSUMERS]:
        out.print(f"  {uuid}: {amounts_in_words(held[uuid]['resources'])}")
    if len(held) > _MOST_CONSUMERS:
        out.print(f"  and {len(held) - _MOST_CONSUMERS} more (--json shows all)")


def usage_table(title: str, providers: Sequence[Contents]) -> Table:
    """Return a table of how full some providers are, with a bar for each inventory."""
    table = Table("provider", "class", title=title, title_justify="left")
    table.add_column("used", justify="right")
    table.add_column("capacity", justify="right")
    table.add_column("")
    for provider in providers:
        for name, part in provider.stock.items():
            full = bar(part.used, part.capacity, width=20)
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


def _show_usage(options: argparse.Namespace) -> int:
    """Show a table: a row for each class, by type of consumer."""
    filters = {"project_id": options.project} | ({"user_id": options.user} if options.user else {})
    with client_of(options) as client:
        client.versions.require(Need("usage by project", Feature.USAGES))
        answer = client.get("/usages", **filters)
        is_typed = client.versions.has_feature(Feature.CONSUMER_TYPES)
    if options.json:
        say_document(answer)
        return 0
    usages: Mapping[str, Any] = answer["usages"] if is_typed else {"": answer["usages"]}
    if not any(usages.values()):
        say(f"Project {options.project} uses nothing.")
        return 0
    table = Table(
        "type", "consumers", "class", title=f"Project {options.project}", title_justify="left"
    )
    table.add_column("used", justify="right")
    for kind, classes in usages.items():
        count = str(classes.get(_COUNT, ""))
        for name, used in classes.items():
            if name != _COUNT:
                table.add_row(kind, count, name, str(used))
    printer().print(table)
    return 0


def _watch(options: argparse.Namespace) -> int:
    """Show changes until interrupted."""
    with client_of(options) as client:
        roots = [
            name if normalised_uuid(name) else find_provider(client, name)["uuid"]
            for name in options.in_tree
        ]
        for changes in watch(client, options.since, in_tree=roots):
            if options.json:
                say_document(_changes_document(changes), indent=None)
            say(*(() if options.json else _changes_lines(changes)), flush=True)
    return 0


def _changes_lines(changes: Changes) -> list[str]:
    lines = ["catalogue"] if changes.catalogue else []
    for change in changes.changes:
        what = ",".join(part for part in _PARTS if part in change.what)
        told = "deleted" if change.is_deleted else f"{change.generation} {what}"
        lines.append(f"{change.uuid} {told}")
    return lines


def _changes_document(changes: Changes) -> dict[str, Any]:
    told = [
        {"uuid": change.uuid, "deleted": True}
        if change.is_deleted
        else {
            "uuid": change.uuid,
            "generation": change.generation,
            "what": [part for part in _PARTS if part in change.what],
        }
        for change in changes.changes
    ]
    return {"changes": told, "catalogue": changes.catalogue, "cursor": changes.cursor}
