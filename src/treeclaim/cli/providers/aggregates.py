# SPDX-License-Identifier: Apache-2.0
"""`aggregate list`, `set` and `import`: the names of aggregates (contract page 100)."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from treeclaim.cli.command import CloudLister, Result
from treeclaim.cli.compute import NOVA, document
from treeclaim.cli.output import CommandError, count_text, object_of, text_in
from treeclaim.client import Client
from treeclaim.client.aggregates import LONGEST_NAME, name_aggregates, read_aggregate_names
from treeclaim.model.names import normalised_uuid

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter

_AGGREGATES_VERSION = "2.41"
"""Microversion of the compute API that lists aggregates with their uuids, which are Placement's."""


class ListAggregates(CloudLister):
    """List the names of aggregates."""

    def answer(self, client: Client, options: argparse.Namespace) -> Result:
        del options
        names = read_aggregate_names(client) or {}
        return _names_result(names, f"{count_text(len(names), 'aggregate')} with a name")


class SetAggregate(CloudLister):
    """Name an aggregate."""

    example = "7f6c2d1e-4b5a-4c3d-8e9f-0a1b2c3d4e5f --name rack-1"

    arguments = """
        UUID           uuid of the aggregate
        ! --name NAME  its name; an empty name removes it
        --dry-run      show what would be changed, and change nothing
    """

    def answer(self, client: Client, options: argparse.Namespace) -> Result:
        return _store(client, {options.uuid: options.name or None}, options)


class ImportAggregates(CloudLister):
    """Name aggregates as Nova or a file does. May be repeated."""

    example = "nova --dry-run"

    arguments = """
        source:nova|FILE  Nova's host aggregates and availability zones, or a JSON file {UUID: NAME or null}
        --dry-run         show what would be changed, and change nothing
    """

    def answer(self, client: Client, options: argparse.Namespace) -> Result:
        if options.source == NOVA:
            names: dict[str, str | None] = dict(_names_of_nova(self.compute(options, "nova")()))
        else:
            names = dict(_names_in(Path(options.source)))
        return _store(client, names, options)


def _store(client: Client, names: Mapping[str, str | None], options: argparse.Namespace) -> Result:
    present = read_aggregate_names(client) or {}
    changes = {}
    for text, name in names.items():
        uuid = normalised_uuid(text)
        if uuid is None:
            raise CommandError(f"{text!r} is not the uuid of an aggregate")
        if present.get(uuid) != name:
            changes[uuid] = name
    if changes and not options.dry_run:
        name_aggregates(client, changes)
    would = "would be " if options.dry_run else ""
    changed = count_text(len(changes), "name")
    note = f"{changed} {would}changed, {len(names) - len(changes)} as they were"
    return _names_result(changes, note)


def _names_result(names: Mapping[str, str | None], note: str) -> Result:
    rows = [(uuid, name or "(none)") for uuid, name in names.items()]
    return Result(("Aggregate", "Name"), rows, {"names": dict(names)}, notes=[note])


def _names_of_nova(compute: "Adapter") -> Iterator[tuple[str, str]]:
    """Yield the names of Nova's host aggregates, with the zones that they make."""
    body = document(compute, "/os-aggregates", "aggregates", microversion=_AGGREGATES_VERSION)
    for aggregate in body["aggregates"]:
        try:
            uuid, name = str(aggregate["uuid"]), str(aggregate["name"])
            zone = aggregate.get("availability_zone")
        except (KeyError, TypeError, AttributeError) as error:
            raise CommandError(
                "the compute API does not list the uuids of its aggregates"
            ) from error
        words = name if zone in (None, "", name) else f"{name}, zone {zone}"
        yield uuid, words[:LONGEST_NAME]


def _names_in(path: Path) -> Iterator[tuple[str, str | None]]:
    for uuid, name in object_of(path, text_in(path)).items():
        if not (name is None or isinstance(name, str)):
            raise CommandError(f"{path}: the name of {uuid} is not a text")
        yield uuid, name or None
