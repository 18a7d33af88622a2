# SPDX-License-Identifier: Apache-2.0
"""`aggregate list`, `set` and `import` (contract page 100)."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from treeclaim.cli.command import CloudLister, Result
from treeclaim.cli.nova import NOVA
from treeclaim.cli.output import CommandError, format_count, parse_object, read_text
from treeclaim.client import Client
from treeclaim.client.aggregates import name_aggregates, read_aggregate_names
from treeclaim.model.names import normalised_uuid


class ListAggregates(CloudLister):
    """List the names of aggregates."""

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        del options
        names = read_aggregate_names(client) or {}
        return _make_result(names, f"{format_count(len(names), 'aggregate')} with a name")


class SetAggregate(CloudLister):
    """Name an aggregate."""

    example = "7f6c2d1e-4b5a-4c3d-8e9f-0a1b2c3d4e5f --name rack-1"

    arguments = """
        UUID           uuid of the aggregate
        ! --name NAME  its name; an empty name removes it
        --dry-run      show the changes without making them
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        return _store(client, {options.uuid: options.name or None}, options)


class ImportAggregates(CloudLister):
    """Name aggregates as Nova or a file does. May be repeated."""

    example = "nova --dry-run"

    arguments = """
        source:nova|FILE  Nova's host aggregates and availability zones, or a JSON file {UUID: NAME or null}
        --dry-run         show the changes without making them
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        if options.source == NOVA:
            names: dict[str, str | None] = {
                **self.connect_nova(options, NOVA).list_aggregate_names()
            }
        else:
            names = dict(_read_name_file(Path(options.source)))
        return _store(client, names, options)


def _store(client: Client, names: Mapping[str, str | None], options: argparse.Namespace) -> Result:
    present_names = read_aggregate_names(client) or {}
    changes = {}
    for text, name in names.items():
        uuid = normalised_uuid(text)
        if uuid is None:
            raise CommandError(f"{text!r} is not the uuid of an aggregate")
        if present_names.get(uuid) != name:
            changes[uuid] = name
    if changes and not options.dry_run:
        name_aggregates(client, changes)
    would = "would be " if options.dry_run else ""
    changed_text = format_count(len(changes), "name")
    note = f"{changed_text} {would}changed, {len(names) - len(changes)} as they were"
    return _make_result(changes, note)


def _make_result(names: Mapping[str, str | None], note: str) -> Result:
    rows = [(uuid, name or "(none)") for uuid, name in names.items()]
    return Result(("Aggregate", "Name"), rows, {"names": dict(names)}, notes=[note])


def _read_name_file(path: Path) -> Iterator[tuple[str, str | None]]:
    for uuid, name in parse_object(path, read_text(path)).items():
        if not (name is None or isinstance(name, str)):
            raise CommandError(f"{path}: the name of {uuid} is not a text")
        yield uuid, name or None
