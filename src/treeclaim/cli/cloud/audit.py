# SPDX-License-Identifier: Apache-2.0
"""`treeclaim audit` (contract page 99, section 5)."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keystoneauth1.adapter import Adapter

from treeclaim.cli.cloud.compute import compute_of, living_from
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.output import (
    CommandError,
    complain,
    failing_apart,
    is_confirmed,
    natural,
    positive,
    say,
    say_document,
)
from treeclaim.client import Client
from treeclaim.client.reports import Reports
from treeclaim.model.extension.audit import REPAIRABLE, FindingKind

CLEAN, FINDINGS = 0, 1
"""Exit codes, besides `FAILED`."""

_MOST = 1_000
"""Items of each kind that are requested if they are to be repaired."""

_MEANINGS = {
    FindingKind.OVER_CAPACITY: "more is used than exists",
    FindingKind.AGAINST_UNITS: "allocations that min_unit, max_unit or step_size no longer allow",
    FindingKind.WITHOUT_INVENTORY: "allocations of classes that the provider does not have",
    FindingKind.WITHOUT_PROVIDER: "rows of providers that do not exist",
    FindingKind.WITHOUT_CONSUMER: "consumers without a record",
    FindingKind.EMPTY_CONSUMER: "records of consumers that hold nothing",
    FindingKind.BROKEN_ROOT: "roots that are not the top of the parents",
    FindingKind.BROKEN_PARENT: "parents that do not exist, or circles",
    FindingKind.IN_MANY_TREES: "consumers in several trees: unfinished moves",
    FindingKind.SAME_HOST: "hosts that exist twice under similar names",
    FindingKind.UNUSED_AGGREGATE: "aggregates without members",
    FindingKind.UNUSED_TRAIT: "custom traits that no provider has",
    FindingKind.UNUSED_CLASS: "custom classes that no provider has",
    FindingKind.EMPTY_TREE: "trees without inventory",
    FindingKind.EXPIRED_HOLD: "holds that still exist after their end",
    FindingKind.BROKEN_HOLD: "terms or draws of a consumer that is not a hold",
    FindingKind.BROKEN_DRAW: "more drawn from holds than the consumer has",
    FindingKind.MUST_LEAVE: "consumers at providers with a condition whose effect is leave",
    FindingKind.ORPHANED: "consumers that no longer exist in the cloud",
}


_FEW = 0.1
"""Share of orphans among all consumers judged, beyond which the list of the living may be incomplete."""


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "audit",
        description="Exit status: 0 if nothing was found, 1 for findings, 2 if the command failed.",
    )
    add_audit_options(command)
    finish(command, run, json="print the server's document")


def add_audit_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say what to look for, and what to repair."""
    command.add_argument(
        "--kind",
        nargs="+",
        choices=[kind.value for kind in FindingKind],
        metavar="KIND",
        help=f"look only for these: {', '.join(FindingKind)}",
    )
    command.add_argument(
        "--living-from",
        metavar="nova|FILE",
        help="who lives, to find orphans: the servers of the cloud of clouds.yaml, or a file with "
        'one uuid a line or {"INSTANCE": [uuid, ...], ...}',
    )
    command.add_argument(
        "--older-than",
        type=natural,
        metavar="SECONDS",
        help="leave out consumers that were given something within this time (default 3600)",
    )
    command.add_argument(
        "--repair",
        nargs="+",
        choices=[kind.value for kind in REPAIRABLE],
        metavar="KIND",
        help=f"repair these after asking: {', '.join(REPAIRABLE)}",
    )
    command.add_argument(
        "--yes",
        action="count",
        default=0,
        help="repair without asking; give it twice if more than a tenth would be orphans",
    )
    command.add_argument(
        "--limit", type=positive, default=100, help="most items of each kind (default 100)"
    )


def run(options: argparse.Namespace) -> int:
    """Show the findings, and repair those that are asked for."""
    with failing_apart():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    living = living_of(options, lambda: compute_of(options, "--living-from nova"))
    with client_of(options) as client:
        findings_by_kind = audited(client, options, living)
    if options.json:
        say_document({"findings": findings_by_kind})
    else:
        _show(findings_by_kind)
    return FINDINGS if any(findings["count"] for findings in findings_by_kind.values()) else CLEAN


def living_of(
    options: argparse.Namespace, compute: Callable[[], Adapter]
) -> dict[str, list[str]] | None:
    """Return the living consumers, None if the options do not say where to find them.

    Raises:
        CommandError: if they cannot be found out, or orphans are to be repaired without them.
    """
    if options.repair and FindingKind.ORPHANED in options.repair and not options.living_from:
        raise CommandError("--repair orphaned needs --living-from")
    return living_from(options.living_from, compute) if options.living_from else None


def audited(
    client: Client, options: argparse.Namespace, living: Mapping[str, Sequence[str]] | None
) -> dict[str, dict[str, Any]]:
    """Return the findings by kind, after repairing those that are to be repaired."""
    reports = Reports(client)
    findings = _audit(reports, options, living)
    if options.repair and _mend(reports, options, findings, living or {}):
        findings = _audit(reports, options, living)
    return findings


def _audit(
    reports: Reports, options: argparse.Namespace, living: Mapping[str, Sequence[str]] | None
) -> dict[str, dict[str, Any]]:
    return reports.audit(
        kinds=options.kind or (),
        limit=_MOST if options.repair else min(options.limit, _MOST),
        living=living,
        older_than=options.older_than,
    )


def _mend(
    reports: Reports,
    options: argparse.Namespace,
    findings: Mapping[str, Mapping[str, Any]],
    living: Mapping[str, Sequence[str]],
) -> bool:
    """Repair the kinds that are asked for, after a question; return whether that was done."""
    repairs = [
        {"kind": kind, **item}
        for kind in options.repair
        for item in findings.get(kind, {"items": ()})["items"]
    ]
    if not repairs:
        return False
    if not options.yes and not is_confirmed(f"Repair {len(repairs)} findings? [y/N]"):
        return False
    orphans = sum(repair["kind"] == FindingKind.ORPHANED for repair in repairs)
    if not _may_be_released(options, orphans, living):
        return False
    told = reports.repair(repairs)
    # Beside the result, which may be JSON.
    complain(
        *(f"refused: {in_words(outcome)}" for outcome in told if outcome["result"] == "refused")
    )
    done = sum(outcome["result"] == "done" for outcome in told)
    complain(f"{done} of {len(repairs)} findings were repaired")
    return True


def _may_be_released(
    options: argparse.Namespace, orphans: int, living: Mapping[str, Sequence[str]]
) -> bool:
    """Ask again if so many would be released that the list of the living may be wrong.

    Raises:
        CommandError: if nobody is to be asked, but --yes was given only once.
    """
    spared = len({uuid for uuids in living.values() for uuid in uuids})
    if orphans <= _FEW * (orphans + spared):
        return True
    words = f"{orphans} consumers would lose everything that they hold; {spared} are listed as living, and spared."
    if options.yes == 1:
        raise CommandError(f"{words} Is the list complete? Give --yes twice if it is")
    return bool(options.yes) or is_confirmed(f"{words} Is the list complete? [y/N]")


def _show(findings_by_kind: Mapping[str, Mapping[str, Any]]) -> None:
    if not any(findings["count"] for findings in findings_by_kind.values()):
        say("Nothing found.")
        return
    for kind, findings in findings_by_kind.items():
        if not findings["count"]:
            continue
        say(f"{kind}: {findings['count']} ({_MEANINGS[FindingKind(kind)]})")
        say(*(f"  {in_words(item)}" for item in findings["items"]))
        missing = findings["count"] - len(findings["items"])
        if missing:
            say(f"  and {missing} more (--limit)")


def in_words(item: Mapping[str, Any]) -> str:
    """Return a finding, or what became of it, in a line."""
    return "  ".join(f"{name}={_value(value)}" for name, value in item.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"{provider['name']} ({provider['uuid']})" for provider in value)
    return str(value)
