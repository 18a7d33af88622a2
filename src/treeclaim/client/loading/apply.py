# SPDX-License-Identifier: Apache-2.0
"""Brings an endpoint to the state of a topology; anything the topology omits stays as it is."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import groupby
from typing import Any

from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError
from treeclaim.client.loading.changes import (
    Action,
    PlannedChange,
)
from treeclaim.client.loading.plan import LoadPlan, change_of, make_plan
from treeclaim.client.patience import is_conflict
from treeclaim.client.reports import Reports, in_batches
from treeclaim.client.states import (
    State,
    applied_in_bulk,
    call_part,
    changed_parts,
    entry_of,
    is_moved,
    read_state,
)
from treeclaim.client.topology import Topology
from treeclaim.client.transport import THREADS, in_parallel
from treeclaim.model.parts import ProviderPart

_ATTEMPTS = 5
"""How often a provider that others change meanwhile is read and written anew."""

_ORDERED = 100
"""Changes that are made one after the other, in the order of the file: providers of a small file
are then listed, and found, in that order. It takes a second or less."""

_GENERATION = "resource_provider_generation"
_REFUSALS = {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
"""Errors about a single provider; any other error is about the service or the rights."""

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class LoadOutcome:
    """What was done.

    Attributes:
        created, updated, deleted, unchanged: Names of providers.
        refused: What could not be done, in words.
        total: How many providers the plan is about.
        is_interrupted: Whether somebody ended it early.
    """

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    total: int = 0
    is_interrupted: bool = False

    @property
    def done(self) -> int:
        """Return how many providers match the file."""
        parts = (self.created, self.updated, self.deleted, self.unchanged)
        return sum(len(part) for part in parts)

    def add(self, action: Action, name: str) -> None:
        """Record the change of a provider."""
        {
            Action.CREATE: self.created,
            Action.CHANGE: self.updated,
            Action.DELETE: self.deleted,
            Action.KEEP: self.unchanged,
        }[action].append(name)


def apply_topology(client: Client, topology: Topology, *, prune: bool = False) -> LoadOutcome:
    """Create what is missing and change what differs; doing it again does nothing.

    Raises:
        TopologyError: before anything is written, with all that is wrong.
        ClientError: if the endpoint fails.
    """
    return apply_plan(client, make_plan(client, topology, prune=prune))


def planned_outcome(plan: LoadPlan) -> LoadOutcome:
    """Return the outcome that a plan would have."""
    outcome = LoadOutcome(total=len(plan.changes))
    for change in plan.changes:
        if change.refusal is None:
            outcome.add(change.action, change.name)
        else:
            outcome.refused.append(f"{change.place}: {change.refusal}")
    return outcome


def apply_plan(
    client: Client,
    plan: LoadPlan,
    *,
    threads: int = THREADS,
    progress: Progress = lambda _stage, _done, _total: None,
) -> LoadOutcome:
    """Carry a plan out: parents before children; deletions last, the deepest first.

    A provider that is refused does not stop the others. An interruption (`KeyboardInterrupt`) lets
    each provider that was begun be finished.

    Raises:
        ClientError: if the endpoint fails.
    """
    outcome = LoadOutcome(total=len(plan.changes))
    client.ensure_names(plan.traits, plan.classes)
    work = _Work(client, plan, outcome)
    rounds = groupby(
        sorted(plan.changes, key=_turn), key=lambda change: (_turn(change), change.action)
    )
    begun = 0
    if len(plan.changes) <= _ORDERED:
        threads = 1
    try:
        for _, some in rounds:
            for changes in in_batches(list(some)):
                before = begun

                def report(done: int, _total: int, before: int = before) -> None:
                    progress("writing", before + done, len(plan.changes))

                if changed_in_bulk(client, changes):
                    work.note(changes)
                    report(len(changes), len(changes))
                else:
                    in_parallel(work.do, changes, threads=threads, progress=report)
                begun += len(changes)
        if plan.aggregates:
            Reports(client).name_aggregates(plan.aggregates)
    except KeyboardInterrupt:
        outcome.is_interrupted = True
    return outcome


def _turn(change: PlannedChange) -> tuple[bool, int, str]:
    """Order changes: two with the same turn do not wait for each other."""
    is_last = change.action is Action.DELETE
    return is_last, -change.level if is_last else change.level, change.action.value


class _Work:
    """Does changes, in several threads."""

    def __init__(self, client: Client, plan: LoadPlan, outcome: LoadOutcome) -> None:
        self._client = client
        self._prune = plan.prune
        self._outcome = outcome
        self._lock = threading.Lock()

    def note(self, changes: Iterable[PlannedChange]) -> None:
        """Record the changes of several providers."""
        for change in changes:
            self._outcome.add(change.action, change.name)

    def do(self, change: PlannedChange) -> None:
        """Change a provider, and record it."""
        try:
            done = self._do(change)
        except ClientError as error:
            if error.status not in _REFUSALS:
                raise
            with self._lock:
                self._outcome.refused.append(f"{change.place}: {error}")
            return
        with self._lock:
            self._outcome.add(done, change.name)

    def _do(self, change: PlannedChange) -> Action:
        if change.action is Action.DELETE and change.before is not None:
            self._client.call("DELETE", f"/resource_providers/{change.before.uuid}")
            return change.action
        first = change.action
        for left in reversed(range(_ATTEMPTS)):
            try:
                write_change(self._client, change)
            except ClientError as error:
                if not (left and is_conflict(error)):
                    raise
                change = self._read_anew(change)
            else:
                break
        return first

    def _read_anew(self, change: PlannedChange) -> PlannedChange:
        """Plan the rest again for a provider that changed meanwhile."""
        if change.planned is None or change.after is None:
            return change
        rows = self._client.providers(uuid=change.after.uuid)
        before = read_state(self._client, rows[0], change.planned.parts) if rows else None
        return change_of(
            change.planned, before, change.after.uuid, change.after.parent, prune=self._prune
        )


def changed_in_bulk(client: Client, changes: Sequence[PlannedChange]) -> bool:
    """Make or change providers by one call; return False if single calls are to do it.

    Raises:
        ClientError: if the endpoint fails.
    """
    entries = []
    for change in changes:
        if change.after is None or change.action is Action.KEEP:
            return False
        entry = entry_of(change.before, change.after)
        if change.before is not None:
            entry["generation"] = change.before.generation
        entries.append(entry)
    return applied_in_bulk(client, entries)


def write_change(client: Client, change: PlannedChange) -> None:
    """Make or change a provider, in one attempt.

    Raises:
        ClientError: if it is refused, also because somebody else changed the provider.
    """
    after = change.after
    if after is None or change.action is Action.KEEP:
        return
    before = change.before
    if before is None:
        body: dict[str, Any] = {"name": after.name, "uuid": after.uuid}
        if after.parent is not None:
            body["parent_provider_uuid"] = after.parent
        client.call("POST", "/resource_providers", json=body)
        before = after.without_parts
    elif is_moved(before, after):
        body = {"name": after.name, "parent_provider_uuid": after.parent}
        client.call("PUT", f"/resource_providers/{after.uuid}", json=body)
    _write_parts(client, after, changed_parts(before, after), before.generation)


def _write_parts(
    client: Client, after: State, parts: Iterable[ProviderPart[Any]], generation: int
) -> None:
    for part in parts:
        body = {part.name: part.written(part.value_in(after.values)), _GENERATION: generation}
        generation = call_part(client, "PUT", after.uuid, part, body)[_GENERATION]
