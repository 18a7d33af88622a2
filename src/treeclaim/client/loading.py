# SPDX-License-Identifier: Apache-2.0
"""Carries out plans of `treeclaim load`: writes whole trees, then deletes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import groupby

from treeclaim.client.aggregates import name_aggregates
from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError
from treeclaim.client.load_plans import LoadPlan, Progress, make_plan
from treeclaim.client.provider_batches import Action, PlannedChange, in_trees, write_trees
from treeclaim.client.session import in_parallel
from treeclaim.client.states import read_rows
from treeclaim.client.topology import Topology
from treeclaim.client.topology.tree import order_trees


@dataclass(slots=True)
class LoadOutcome:
    """The result of a load.

    Attributes:
        created, updated, deleted, unchanged: Names of providers.
        refusals: Reasons by the uuids of providers.
        refused: The refusals in words, with the place of each.
        total: How many providers the plan is about.
        is_interrupted: Whether the load was interrupted.
    """

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    total: int = 0
    is_interrupted: bool = False

    @property
    def done(self) -> int:
        """Return how many providers match the file."""
        parts = (self.created, self.updated, self.deleted, self.unchanged)
        return sum(len(part) for part in parts)

    def add(self, changes: Iterable[PlannedChange]) -> None:
        """Record changes that were made."""
        names = {
            Action.CREATE: self.created,
            Action.CHANGE: self.updated,
            Action.DELETE: self.deleted,
            Action.KEEP: self.unchanged,
        }
        for change in changes:
            names[change.action].append(change.after.name)

    def refuse(self, changes: Iterable[PlannedChange], refusals: Mapping[str, str]) -> None:
        """Record the changes among some that were refused."""
        self.refusals |= refusals
        self.refused += [
            f"{change.place}: {refusals[change.after.uuid]}"
            for change in changes
            if change.after.uuid in refusals
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
    progress: Progress = lambda _stage, _done, _total: None,
) -> LoadOutcome:
    """Carry a plan out: whole trees first, then deletions, the deepest first.

    A tree that is refused does not stop the others. After an interruption (`KeyboardInterrupt`) the
    outcome has the trees that were written.

    Args:
        client: The endpoint.
        plan: The plan.
        dry_run: True to write nothing, and return the outcome that the plan would have.
        progress: Called after each batch.

    Raises:
        ClientError: if the endpoint fails.
    """
    outcome = LoadOutcome(total=len(plan.changes))
    written = [change for change in plan.changes if change.action is not Action.DELETE]
    deletions = [change for change in plan.changes if change.action is Action.DELETE]
    outcome.add(change for change in written if change.action is Action.KEEP)

    def note(changes: Sequence[PlannedChange]) -> None:
        outcome.add(changes)
        progress("writing", outcome.done, outcome.total)

    try:
        refusals = write_trees(client, in_trees(written, plan.parents), dry_run=dry_run, note=note)
        outcome.refuse(written, refusals)
        if dry_run:
            refusals = _foreseen_refusals(client, deletions, plan.parents)
        else:
            refusals = _delete(client, deletions, plan.parents)
        outcome.refuse(deletions, refusals)
        note([change for change in deletions if change.after.uuid not in refusals])
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


def _foreseen_refusals(
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
