# SPDX-License-Identifier: Apache-2.0
"""`treeclaim load`: provider trees from a file into any Placement API endpoint."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.progress import shown_progress
from treeclaim.cli.output import (
    INTERRUPTED,
    CommandError,
    complain,
    positive,
    printer,
    say,
)
from treeclaim.client.loading.apply import LoadOutcome, apply_plan, planned_outcome
from treeclaim.client.loading.changes import Action, PlannedChange
from treeclaim.client.loading.plan import LoadPlan, make_plan, with_problems_there
from treeclaim.client.topology import Topology, TopologyError, read_topology
from treeclaim.client.transport import THREADS
from treeclaim.model.parts import PARTS

_MOST_REFUSED = 50
"""Refusals shown; more than that usually have the same cause."""

_STYLES = {Action.CREATE: "green", Action.CHANGE: "yellow", Action.DELETE: "red"}


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "load",
        help="load provider trees from a file",
        description="Make an endpoint match a file. What the file leaves out stays as it "
        "is; what it gives as empty is emptied. Everything is checked before anything is sent. It "
        "may be interrupted and repeated.",
    )
    command.add_argument(
        "file", type=Path, help="a topology in YAML, or - for standard input; see docs/loading.md"
    )
    command.add_argument(
        "--dry-run", action="store_true", help="show what would be changed, and change nothing"
    )
    command.add_argument(
        "--prune",
        action="store_true",
        help=f"remove the {', '.join(part.name for part in PARTS)} and children that a part of "
        "the file does not list; parts that it leaves out stay",
    )
    command.add_argument(
        "--threads", type=positive, default=THREADS, help=f"requests made at once ({THREADS})"
    )
    finish(command, run)


def run(options: argparse.Namespace) -> int:
    """Load a file and say what was done; the exit code is 1 if something was refused."""
    try:
        with _nothing_is_changed_yet():
            topology = _read(options)
        with client_of(options) as client, shown_progress() as progress:
            with _nothing_is_changed_yet():
                plan = make_plan(
                    client,
                    topology,
                    prune=options.prune,
                    threads=options.threads,
                    progress=progress,
                )
            if not options.dry_run:
                outcome = apply_plan(client, plan, threads=options.threads, progress=progress)
    except TopologyError as error:
        raise CommandError(*error.lines) from error
    if options.dry_run:
        show_difference(plan)
        say(summary(planned_outcome(plan), dry_run=True))
        return 0
    return _say(outcome)


@contextmanager
def _nothing_is_changed_yet() -> Iterator[None]:
    """Report it when a person interrupts the block."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError("interrupted; nothing was changed", exit_code=INTERRUPTED) from None


def _read(options: argparse.Namespace) -> Topology:
    """Read the file; its problems are reported together with those that the endpoint knows, if it answers."""
    try:
        return read_topology(options.file)
    except TopologyError as error:
        try:
            with client_of(options) as client:
                problems = with_problems_there(client, error)
        except CommandError:
            problems = error
        raise problems from error


def _say(outcome: LoadOutcome) -> int:
    if outcome.is_interrupted:
        complain(
            f"Interrupted: {outcome.done} of {outcome.total} providers match the file "
            f"({summary(outcome, dry_run=False)}). Run the same command again to continue."
        )
        return INTERRUPTED
    complain(*(f"refused: {line}" for line in outcome.refused[:_MOST_REFUSED]))
    if len(outcome.refused) > _MOST_REFUSED:
        complain(f"refused: and {len(outcome.refused) - _MOST_REFUSED} more")
    say(summary(outcome, dry_run=False))
    return 1 if outcome.refused else 0


def show_difference(plan: LoadPlan) -> None:
    """Show each provider that would change, and each of its fields, with the old and new value."""
    out = printer()
    for what, names in (
        ("trait", plan.traits),
        ("resource class", plan.classes),
        ("name of an aggregate", [f"{name} ({uuid})" for uuid, name in plan.aggregates.items()]),
    ):
        for name in names:
            out.print(f"+ {what} {name}", style="green")
    for change in plan.changes:
        if change.action is not Action.KEEP:
            out.print(f"{change.action.value} {_title(change)}", style=_STYLES[change.action])
        for field in change.fields(plan.names):
            out.print(f"    {field}", style=_STYLES[Action(field.sign)])


def _title(change: PlannedChange) -> str:
    known = change.after or change.before
    uuid = "" if known is None else known.uuid
    return f"{change.name} {uuid}"


def summary(outcome: LoadOutcome, *, dry_run: bool) -> str:
    """Say what was done to how many providers."""
    refused = f", {len(outcome.refused)} refused" if outcome.refused else ""
    return (
        f"{len(outcome.created)} {'would be ' if dry_run else ''}created, "
        f"{len(outcome.updated)} changed, {len(outcome.deleted)} deleted, "
        f"{len(outcome.unchanged)} unchanged{refused}"
    )
