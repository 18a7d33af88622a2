# SPDX-License-Identifier: Apache-2.0
"""`treeclaim load`: provider trees from a file; `copy`: all that one Placement API endpoint holds, to another one."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from treeclaim.cli.cloud.endpoint import client_at, client_of, finish
from treeclaim.cli.cloud.progress import shown_progress
from treeclaim.cli.output import (
    INTERRUPTED,
    CommandError,
    complain,
    positive,
    printer,
    say,
)
from treeclaim.client.copy import CopyOutcome, compare, copy
from treeclaim.client.loading import (
    LoadOutcome,
    LoadPlan,
    apply_plan,
    make_plan,
    with_endpoint_problems,
)
from treeclaim.client.provider_batches import Action, PlannedChange
from treeclaim.client.topology import Topology, TopologyError, read_topology
from treeclaim.client.transport import THREADS
from treeclaim.model.parts import PARTS

_MOST_REFUSED = 50
"""Refusals shown; more than that usually have the same cause."""

_STYLES = {Action.CREATE: "green", Action.CHANGE: "yellow", Action.DELETE: "red"}

_THREADS = 4


def add_to(commands: Any) -> None:
    """Add the commands."""
    command = commands.add_parser(
        "load",
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
    command = commands.add_parser(
        "copy",
    )
    for end in ("from", "to"):
        _add_end(command, end)
    command.add_argument(
        "--compare", action="store_true", help="only compare the two; nothing is written"
    )
    command.add_argument(
        "--threads", type=positive, default=_THREADS, help="reading requests made at once"
    )
    command.set_defaults(run=_copy)


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
            outcome = apply_plan(
                client,
                plan,
                dry_run=options.dry_run,
                threads=options.threads,
                progress=progress,
            )
    except TopologyError as error:
        raise CommandError(*error.lines) from error
    if options.dry_run:
        show_difference(plan, outcome)
    return _say(outcome, dry_run=options.dry_run)


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
                problems = with_endpoint_problems(client, error)
        except CommandError:
            problems = error
        raise problems from error


def _say(outcome: LoadOutcome, *, dry_run: bool = False) -> int:
    if outcome.is_interrupted:
        complain(
            f"Interrupted: {outcome.done} of {outcome.total} providers match the file "
            f"({summary(outcome, dry_run=False)}). Run the same command again to continue."
        )
        return INTERRUPTED
    complain(*(f"refused: {line}" for line in outcome.refused[:_MOST_REFUSED]))
    if len(outcome.refused) > _MOST_REFUSED:
        complain(f"refused: and {len(outcome.refused) - _MOST_REFUSED} more")
    say(summary(outcome, dry_run=dry_run))
    return 1 if outcome.refused else 0


def show_difference(plan: LoadPlan, outcome: LoadOutcome) -> None:
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
        if change.state.uuid in outcome.refusals:
            continue
        if change.action is not Action.KEEP:
            out.print(f"{change.action.value} {_title(change)}", style=_STYLES[change.action])
        for field in change.fields(plan.names):
            out.print(f"    {field}", style=_STYLES[Action(field.sign)])


def _title(change: PlannedChange) -> str:
    return f"{change.name} {change.state.uuid}"


def summary(outcome: LoadOutcome, *, dry_run: bool) -> str:
    """Say what was done to how many providers."""
    refused = f", {len(outcome.refused)} refused" if outcome.refused else ""
    return (
        f"{len(outcome.created)} {'would be ' if dry_run else ''}created, "
        f"{len(outcome.updated)} changed, {len(outcome.deleted)} deleted, "
        f"{len(outcome.unchanged)} unchanged{refused}"
    )


def _add_end(command: argparse.ArgumentParser, end: str) -> None:
    upper = end.upper()
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument(f"--{end}", dest=f"{end}_url", metavar="URL", help="URL of the endpoint")
    where.add_argument(
        f"--{end}-cloud", metavar="NAME", help="a cloud of clouds.yaml; needs treeclaim[cloud]"
    )
    command.add_argument(
        f"--{end}-token",
        metavar="TOKEN",
        help=f"token to send to --{end} (or TREECLAIM_{upper}_TOKEN, or OS_TOKEN)",
    )


def _copy(options: argparse.Namespace) -> int:
    """Copy and compare; the exit code is 1 if anything differs in the end."""
    with (
        client_at(options.from_url, _token(options, "from"), options.from_cloud) as source,
        client_at(options.to_url, _token(options, "to"), options.to_cloud) as target,
        shown_progress() as report,
    ):
        if options.compare:
            outcome = CopyOutcome(
                differences=compare(source, target, report, threads=options.threads)
            )
        else:
            outcome = copy(source, target, report, threads=options.threads)
    _say_copied(outcome, only_compared=options.compare)
    return 1 if outcome.refused or outcome.differences else 0


def _token(options: argparse.Namespace, end: str) -> str:
    """Return the token for one end: what is given, or what the environment has."""
    given: str | None = getattr(options, f"{end}_token")
    if given and getattr(options, f"{end}_cloud"):
        raise CommandError(
            f"--{end}-token is for --{end}; a cloud of clouds.yaml has its own authentication"
        )
    names = (f"TREECLAIM_{end.upper()}_TOKEN", "OS_TOKEN")
    return given or next((os.environ[name] for name in names if os.environ.get(name)), "admin")


def _say_copied(outcome: CopyOutcome, *, only_compared: bool) -> None:
    if not only_compared:
        say(
            f"{outcome.providers} providers and {outcome.consumers} consumers written, "
            f"{outcome.unchanged} already equal"
        )
    for title, lines in (("refused", outcome.refused), ("differs", outcome.differences)):
        say(*(f"{title}: {line}" for line in lines[:_MOST_REFUSED]))
        if len(lines) > _MOST_REFUSED:
            say(f"{title}: and {len(lines) - _MOST_REFUSED} more")
    if not outcome.differences:
        say("The target has everything that the source has.")
