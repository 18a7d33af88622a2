# SPDX-License-Identifier: Apache-2.0
"""`treeclaim audit` (contract page 99, section 5)."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from treeclaim.cli.command import Cell, CloudLister, Result
from treeclaim.cli.consumers.allocations import parse_consumer
from treeclaim.cli.names import read_provider_names
from treeclaim.cli.nova import NOVA
from treeclaim.cli.output import (
    FAILED,
    CommandError,
    confirm,
    convert_failures,
    format_count,
    parse_object,
    read_text,
    warn,
)
from treeclaim.client import Client
from treeclaim.client.session import encode_query, split_batches
from treeclaim.model.extension.audit import REPAIRABLE, FindingKind
from treeclaim.model.names import UNKNOWN_TYPE

_LIVING_TYPES = ("INSTANCE", "MIGRATION", UNKNOWN_TYPE)
"""Types of Nova's consumers, and of those in a plain file. Nova claims below the microversion of consumer types, so
most have type `unknown`; newer releases may send types."""

_MOST_ITEMS = 1_000
"""Items of each kind in a request for a repair."""

_SUSPICIOUS_SHARE = 0.1
"""Share of orphans above which the list of live consumers is probably incomplete."""


class Audit(CloudLister):
    """Find errors in the records of the service, and repair them.

    Exit status: 0 if nothing was found, 1 for findings, 2 if the command failed.
    """

    example = "--kind orphaned --living-from nova"
    failure_status: ClassVar[int] = FAILED

    arguments = f"""
        --living-from nova|FILE  source of live consumers, for detecting orphans: the servers of the cloud, or a file with a uuid per line or {{"INSTANCE": [uuid, ...], ...}}
        --older-than SECONDS     ignore consumers with an allocation younger than this (default: 3600)
        --limit N = 100          most items of each kind
        --kind {"|".join(FindingKind)}+  only findings of these kinds (default: all)
        --repair {"|".join(REPAIRABLE)}+  repair findings of these kinds after a confirmation
        --yes                    repair without a confirmation
        --many                   with --yes, also repair if more than a tenth of the consumers are orphans
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        for option, kinds in (("--repair", options.repair), ("--kind", options.kind)):
            if FindingKind.ORPHANED in kinds and not options.living_from:
                raise CommandError(f"{option} orphaned needs --living-from")
        living_uuids = self._read_live_consumers(options) if options.living_from else None
        findings_by_kind = _audit(client, options, living_uuids)
        if options.repair and _repair(client, options, findings_by_kind, living_uuids or {}):
            findings_by_kind = _audit(client, options, living_uuids)
        names = _read_named_providers(client, findings_by_kind)
        rows = [
            (
                kind,
                FindingKind(kind).meaning,
                Cell(item, lambda item: [format_finding(item, names)]),
            )
            for kind, findings in findings_by_kind.items()
            for item in findings["items"]
        ]
        is_clean = not any(findings["count"] for findings in findings_by_kind.values())
        notes = ["Nothing found."] if is_clean else list(_format_counts(findings_by_kind))
        return Result(
            ("Kind", "Meaning", "Finding"),
            rows,
            {"findings": findings_by_kind},
            notes=notes,
            status=0 if is_clean else 1,
        )

    def _read_live_consumers(self, options: argparse.Namespace) -> dict[str, list[str]]:
        """Return the uuids of live consumers by type."""
        source = options.living_from
        if source == NOVA:
            nova = self.connect_nova(options, "--living-from nova")
            living_uuids = dict.fromkeys(_LIVING_TYPES, nova.list_live_consumers())
        else:
            living_uuids = _read_living_file(Path(source))
        empty_types = sorted(name for name, uuids in living_uuids.items() if not uuids)
        if empty_types or not living_uuids:
            # An empty list is nearly always a mistake.
            kind = f" of type {', '.join(empty_types)}" if empty_types else ""
            raise CommandError(
                f"{source}: it lists no live consumer{kind}, so all of them would be orphans; leave out "
                "types that are not to be judged"
            )
        return living_uuids


def _read_living_file(path: Path) -> dict[str, list[str]]:
    """Read a JSON object of uuids by type, or a file with a uuid per line."""
    text = read_text(path)
    if text.lstrip().startswith("{"):
        uuids_of = parse_object(path, text)
        if not all(isinstance(uuids, list) for uuids in uuids_of.values()):
            raise CommandError(f'{path}: {{"INSTANCE": [uuid, …], …}} is expected')
    else:
        uuids_of = dict.fromkeys(_LIVING_TYPES, text.split())
    with convert_failures(path, (CommandError,)):
        return {name: [parse_consumer(str(uuid)) for uuid in uuids_of[name]] for name in uuids_of}


def _format_counts(findings_by_kind: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for kind, findings in findings_by_kind.items():
        missing_count = findings["count"] - len(findings["items"])
        if findings["count"]:
            remark = f", {missing_count} more than shown (--limit)" if missing_count else ""
            yield f"{kind}: {findings['count']}{remark}"


def _audit(
    client: Client, options: argparse.Namespace, living_uuids: Mapping[str, Sequence[str]] | None
) -> dict[str, dict[str, Any]]:
    query = {"limit": str(_MOST_ITEMS if options.repair else min(options.limit, _MOST_ITEMS))}
    if options.kind:
        query["kind"] = ",".join(options.kind)
    path = f"/treeclaim/audit?{encode_query(query)}"
    if living_uuids is None:
        document = client.get(path)
    else:
        body: dict[str, Any] = {"living": living_uuids}
        if options.older_than is not None:
            body["older_than"] = options.older_than
        document = client.call("POST", path, body)
    findings: dict[str, dict[str, Any]] = document["findings"]
    return findings


def _repair(
    client: Client,
    options: argparse.Namespace,
    findings: Mapping[str, Mapping[str, Any]],
    living_uuids: Mapping[str, Sequence[str]],
) -> bool:
    """Repair the chosen kinds after a confirmation; return whether anything was sent."""
    repairs = [
        {"kind": kind, **item}
        for kind in options.repair
        for item in findings.get(kind, {"items": ()})["items"]
    ]
    if not repairs or not _confirm_repairs(options, repairs, living_uuids):
        return False
    names = _read_named_providers(client, findings)
    outcomes = [
        outcome
        for batch in split_batches(repairs)
        for outcome in client.call("POST", "/treeclaim/audit/repairs", {"repairs": batch})[
            "repairs"
        ]
    ]
    # Standard output has only the result, which may be JSON.
    warn(
        *(
            f"refused: {format_finding(outcome, names)}"
            for outcome in outcomes
            if outcome["result"] == "refused"
        )
    )
    repair_count = sum(outcome["result"] == "done" for outcome in outcomes)
    warn(f"{repair_count} of {format_count(len(repairs), 'finding')} repaired")
    return True


def _confirm_repairs(
    options: argparse.Namespace,
    repairs: Sequence[Mapping[str, Any]],
    living_uuids: Mapping[str, Sequence[str]],
) -> bool:
    """Prompt for a confirmation, and for a second one if the share of orphans is suspicious."""
    if not options.yes and not confirm(f"Repair {format_count(len(repairs), 'finding')}? [y/N]"):
        return False
    orphan_count = sum(repair["kind"] == FindingKind.ORPHANED for repair in repairs)
    living_count = len({uuid for uuids in living_uuids.values() for uuid in uuids})
    if options.many or orphan_count <= _SUSPICIOUS_SHARE * (orphan_count + living_count):
        return True
    orphans_text = format_count(orphan_count, "consumer")
    text = (
        f"{orphans_text} would lose all allocations; the list has {living_count} live consumers."
    )
    if options.yes:
        raise CommandError(f"{text} Is the list complete? Add --many if it is")
    return confirm(f"{text} Is the list complete? [y/N]")


def _read_named_providers(
    client: Client, findings_by_kind: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    items = [item for findings in findings_by_kind.values() for item in findings["items"]]
    members = ("provider", "uuid")
    return read_provider_names(
        client, [item[member] for item in items for member in members if member in item]
    )


def format_finding(item: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return a finding, or the outcome of its repair, in one line with names of providers."""
    return "  ".join(f"{name}={_format_value(value, names)}" for name, value in item.items())


def _format_value(value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, list):
        return ", ".join(f"{provider['name']} ({provider['uuid']})" for provider in value)
    name = names.get(value) if isinstance(value, str) else None
    return str(value) if name is None else f"{name} ({value})"
