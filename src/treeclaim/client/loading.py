# SPDX-License-Identifier: Apache-2.0
"""Carries out plans of `treeclaim load`: writes whole trees, then deletes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import groupby

from treeclaim.client.aggregates import name_aggregates
from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError
from treeclaim.client.load_plans import LoadPlan, make_plan
from treeclaim.client.provider_batches import Action, PlannedChange, in_trees, write_trees
from treeclaim.client.session import Progress, in_parallel, no_progress
from treeclaim.client.states import read_rows
from treeclaim.client.topology import Topology
from treeclaim.client.topology.tree import order_trees


@dataclass(slots=True)
class LoadOutcome:
    """The result of a load.

    Attributes:
        plan: The plan that was carried out.
        done: The changes after which a provider matches the file.
        refusals: Reasons by the uuids of providers.
        is_interrupted: Whether the load was interrupted.
    """

    plan: LoadPlan
    done: list[PlannedChange] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    is_interrupted: bool = False

    def names(self, action: Action) -> list[str]:
        """Return the names of the providers with which something was done."""
        return [change.after.name for change in self.done if change.action is action]

    @property
    def refused(self) -> list[str]:
        """The refusals in words, with the place of each."""
        return [
            f"{change.place}: {self.refusals[change.after.uuid]}"
            for change in self.plan.changes
            if change.after.uuid in self.refusals
        ]


def apply_topology(client: Client, topology: Topology, *, prune: bool = False) -> LoadOutcome:
    """Create missing providers and change those that differ; doing it again does nothing.

    Raises:
        TopologyError: before anything is written, with all faults.
        ClientError: if the endpoint fails.
    """
    return apply_plan(client, make_plan(client, topology, prune=prune))


def apply_plan(
    client: Client,
    plan: LoadPlan,
    *,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> LoadOutcome:
    """Carry a plan out: whole trees first, then deletions, the deepest first.

    A tree that is refused does not stop the others. After an interruption (`KeyboardInterrupt`) the
    outcome has the trees that were written.

    Args:
        client: The endpoint.
        plan: The plan.
        dry_run: True to write nothing, and return the outcome that the plan would have.
        progress: Called after each batch.
    """
    outcome = LoadOutcome(plan)
    written = [change for change in plan.changes if change.action is not Action.DELETE]
    deletions = [change for change in plan.changes if change.action is Action.DELETE]
    outcome.done += [change for change in written if change.action is Action.KEEP]

    def note(changes: Sequence[PlannedChange]) -> None:
        outcome.done += changes
        progress("writing", len(outcome.done), len(plan.changes))

    try:
        trees = in_trees(written, plan.parents)
        outcome.refusals |= write_trees(client, trees, dry_run=dry_run, note=note)
        delete = _foresee_refusals if dry_run else _delete
        outcome.refusals |= delete(client, deletions, plan.parents)
        note([change for change in deletions if change.after.uuid not in outcome.refusals])
        if plan.aggregates and not dry_run:
            name_aggregates(client, plan.aggregates)
    except KeyboardInterrupt:
        outcome.is_interrupted = True
    return outcome


def _delete(
    client: Client,
    deletions: Sequence[PlannedChange],
    parents: Mapping[str, str | None],
) -> dict[str, str]:
    """Delete providers, level by level; return the reasons of refusals by uuid."""
    refusals: dict[str, str] = {}
    places = order_trees(parents)

    def delete(change: PlannedChange) -> None:
        try:
            client.call("DELETE", f"/resource_providers/{change.after.uuid}")
        except ClientError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            refusals[change.after.uuid] = str(error)

    for _, level in groupby(deletions, key=lambda change: places[change.after.uuid].depth):
        in_parallel(delete, list(level))
    return refusals


def _foresee_refusals(
    client: Client,
    deletions: Sequence[PlannedChange],
    parents: Mapping[str, str | None],
) -> dict[str, str]:
    """Return the reasons for which deletions, the deepest first, will be refused, by uuid."""
    uuids = [change.after.uuid for change in deletions]
    rows = read_rows(client, uuids, ["usages"])
    with_children = {parents[uuid] for uuid in parents.keys() - set(uuids)}
    refusals: dict[str, str] = {}
    for uuid in uuids:
        usages = rows[uuid]["usages"] if uuid in rows else {}
        used = ", ".join(f"{usages[name]} {name}" for name in sorted(usages) if usages[name])
        if used:
            refusals[uuid] = f"cannot be deleted, as {used} of it are in use"
        elif uuid in with_children:
            refusals[uuid] = "cannot be deleted, as a provider below it stays"
        if uuid in refusals:
            with_children.add(parents[uuid])
    return refusals
