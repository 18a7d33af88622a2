# SPDX-License-Identifier: Apache-2.0
"""`load`: provider trees from a file; `copy`: one endpoint to another."""

import argparse
from collections.abc import Callable, Sequence

from treeclaim.cli.arguments import DeclaredCommand
from treeclaim.cli.command import CloudAction
from treeclaim.cli.connection import open_service_client
from treeclaim.cli.output import INTERRUPTED, CommandError, print_lines, warn
from treeclaim.cli.printing import make_printer, show_progress
from treeclaim.client import Client
from treeclaim.client.copy import CopyOutcome, compare, copy
from treeclaim.client.loading import LoadOutcome, apply_plan, make_plan
from treeclaim.client.provider_batches import Action
from treeclaim.client.topology.file import TopologyError, read_topology
from treeclaim.model.parts import PARTS

_MOST_REFUSED = 50
"""Refusals shown; further ones usually have the same cause."""

_STYLES = {Action.CREATE: "green", Action.CHANGE: "yellow", Action.DELETE: "red"}


class LoadProviders(CloudAction):
    """Make the providers of a service match a file.

    Parts that the file omits stay; empty parts are emptied. The whole file is checked before anything is
    sent. May be interrupted and repeated. Exit status: 0, or 1 if something was refused.
    """

    example = "cloud.yaml --dry-run"

    arguments = f"""
        FILE       a topology in YAML, or - for standard input; see docs/loading.md
        --dry-run  show the changes without making them
        --prune    remove the {", ".join(part.name for part in PARTS)} and children that the file does not list; parts that it omits stay
    """

    def act(self, client: Client, options: argparse.Namespace) -> int:
        try:
            with show_progress() as progress:
                try:
                    topology = read_topology(options.file)
                    plan = make_plan(client, topology, prune=options.prune, progress=progress)
                except KeyboardInterrupt:
                    text = "interrupted; nothing was changed"
                    raise CommandError(text, exit_code=INTERRUPTED) from None
                outcome = apply_plan(client, plan, dry_run=options.dry_run, progress=progress)
        except TopologyError as error:
            raise CommandError(*error.lines) from error
        if options.dry_run:
            _show_difference(outcome)
        return _report(outcome, dry_run=options.dry_run)


class CopyService(DeclaredCommand):
    """Copy everything from one Placement API endpoint to another, and compare the two.

    Exit status: 0 if the target then has everything, 1 if not.
    """

    example = "--from http://old:8778 --to http://new:8778 --compare"

    arguments = """
        ! --from from_url:URL  URL of the source endpoint
        ! --from-cloud NAME    a cloud of clouds.yaml; needs treeclaim[cloud]
        --from-token TOKEN     token for --from (or TREECLAIM_FROM_TOKEN, or OS_TOKEN)
        ! --to to_url:URL      URL of the target endpoint
        ! --to-cloud NAME      a cloud of clouds.yaml; needs treeclaim[cloud]
        --to-token TOKEN       token for --to (or TREECLAIM_TO_TOKEN, or OS_TOKEN)
        --compare              only compare the two; write nothing
    """

    def execute(self, options: argparse.Namespace) -> int:
        with (
            open_service_client("from", options) as source,
            open_service_client("to", options) as target,
            show_progress() as report,
        ):
            if options.compare:
                outcome = CopyOutcome(differences=compare(source, target, report))
            else:
                outcome = copy(source, target, report)
        _report_copy(outcome, only_compared=options.compare)
        return 1 if outcome.refusal_texts or outcome.differences else 0


def _report(outcome: LoadOutcome, *, dry_run: bool = False) -> int:
    if outcome.is_interrupted:
        warn(
            f"Interrupted: {len(outcome.applied_changes)} of {len(outcome.plan.changes)} providers match the "
            f"file ({_format_summary(outcome)}). Run the same command again to continue."
        )
        return INTERRUPTED
    _print_first(warn, "refused", outcome.refusal_texts)
    print_lines(_format_summary(outcome, dry_run=dry_run))
    return 1 if outcome.refusals else 0


def _print_first(show: Callable[[str], None], title: str, lines: Sequence[str]) -> None:
    for line in lines[:_MOST_REFUSED]:
        show(f"{title}: {line}")
    if len(lines) > _MOST_REFUSED:
        show(f"{title}: and {len(lines) - _MOST_REFUSED} more")


def _show_difference(outcome: LoadOutcome) -> None:
    """Print each changed provider and the old and new values of its fields."""
    printer, plan = make_printer(), outcome.plan
    for kind, names in (
        ("trait", plan.traits),
        ("resource class", plan.classes),
        ("name of an aggregate", [f"{name} ({uuid})" for uuid, name in plan.aggregates.items()]),
    ):
        for name in names:
            printer.print(f"+ {kind} {name}", style="green")
    for change in plan.changes:
        state, action = change.after, change.action
        if state.uuid in outcome.refusals:
            continue
        if action is not Action.KEEP:
            printer.print(f"{action.value} {state.name} {state.uuid}", style=_STYLES[action])
        for field in change.format_differences(plan.names):
            printer.print(f"    {field}", style=_STYLES[Action(field[0])])


def _format_summary(outcome: LoadOutcome, *, dry_run: bool = False) -> str:
    created_count, changed_count, deleted_count, unchanged_count = (
        len(outcome.list_names(action))
        for action in (Action.CREATE, Action.CHANGE, Action.DELETE, Action.KEEP)
    )
    refused_text = f", {len(outcome.refusals)} refused" if outcome.refusals else ""
    return (
        f"{created_count} {'would be ' if dry_run else ''}created, {changed_count} changed, "
        f"{deleted_count} deleted, {unchanged_count} unchanged{refused_text}"
    )


def _report_copy(outcome: CopyOutcome, *, only_compared: bool) -> None:
    if not only_compared:
        print_lines(
            f"{outcome.providers} providers and {outcome.consumers} consumers written, "
            f"{outcome.unchanged_count} already equal"
        )
    _print_first(print_lines, "refused", outcome.refusal_texts)
    _print_first(print_lines, "differs", outcome.differences)
    if not outcome.differences:
        print_lines("The target has everything that the source has.")
