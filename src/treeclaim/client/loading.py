# SPDX-License-Identifier: Apache-2.0
"""Plans and applies the changes that make an endpoint match a topology. Parts that the topology omits stay."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import groupby
from typing import Any

from treeclaim.client.aggregates import (
    LONGEST_NAME,
    AggregateNames,
    name_aggregates,
    read_aggregate_names,
)
from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError
from treeclaim.client.provider_batches import (
    Action,
    PlannedChange,
    group_by_tree,
    order_trees,
    write_trees,
)
from treeclaim.client.session import Progress, ignore_progress, run_parallel
from treeclaim.client.states import ProviderState, make_state, read_rows
from treeclaim.client.topology.document import DocumentFault
from treeclaim.client.topology.file import Topology, TopologyError
from treeclaim.client.topology.planned import PlannedProvider, rename_consumed
from treeclaim.model.names import aggregate_uuid, did_you_mean, is_custom_name, normalised_uuid
from treeclaim.model.parts import AGGREGATES, INVENTORIES, PARTS, TRAITS, ProviderPart


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """A plan of changes.

    Attributes:
        changes: One for each provider of the file, then the deletions, deepest first.
        traits, classes: Missing custom names.
        aggregates: Names for unnamed aggregates by uuid: their words in the file.
        names: Final names of all providers and aggregates by uuid.
        parents: Final uuids of the parents of all providers.
    """

    changes: Sequence[PlannedChange]
    traits: Sequence[str]
    classes: Sequence[str]
    aggregates: Mapping[str, str]
    names: Mapping[str, str]
    parents: Mapping[str, str | None]


def make_plan(
    client: Client,
    topology: Topology,
    *,
    prune: bool = False,
    progress: Progress = ignore_progress,
) -> LoadPlan:
    """Plan the changes that make an endpoint match a file; write nothing.

    Raises:
        TopologyError: with all faults of the file, also of its references to the endpoint.
    """
    try:
        planner = _Planner(client, topology, prune=prune)
        traits = planner.find_missing_names("trait", "traits", TRAITS)
        classes = planner.find_missing_names("resource class", "resource_classes", INVENTORIES)
        planner.resolve_uuids()
        states = planner.read_states(lambda done, total: progress("reading", done, total))
    except ClientError as error:
        if topology.problems:
            raise TopologyError(topology.source, topology.problems) from error
        raise
    changes = [planner.plan_change(provider, states) for provider in topology.providers]
    if planner.problems:
        raise TopologyError(topology.source, planner.problems)
    names = read_aggregate_names(client)
    new_names = {} if names is None else _find_unnamed_words(topology, names)
    return LoadPlan(
        [*changes, *planner.plan_deletions()],
        traits,
        classes,
        new_names,
        {**(names or {}), **new_names, **planner.collect_names()},
        planner.parents,
    )


def _find_unnamed_words(topology: Topology, names: AggregateNames) -> dict[str, str]:
    """Return the words of unnamed aggregates by uuid; a renamed aggregate keeps its name."""
    words = {
        str(word)
        for provider in topology.providers
        for word in provider.entry.get(AGGREGATES.name, ())
    }
    words_by_uuid = {
        aggregate_uuid(word): word
        for word in words
        if normalised_uuid(word) is None and len(word) <= LONGEST_NAME
    }
    return {uuid: words_by_uuid[uuid] for uuid in sorted(words_by_uuid.keys() - names.keys())}


class _Planner:
    """Compares a file with an endpoint, and collects all faults."""

    def __init__(self, client: Client, topology: Topology, *, prune: bool) -> None:
        self.problems = list(topology.problems)
        self._client = client
        self._topology = topology
        self._prune = prune
        client.require_extension("loading")
        rows = list(client.provider_states())
        self._by_uuid = {row["uuid"]: row for row in rows}
        self._by_name = {row["name"]: row["uuid"] for row in rows}
        self._uuids: dict[str, str] = {}
        """Uuids of the file's providers by name."""
        self._file_uuids: set[str] = set()
        self.parents: dict[str, str | None] = {
            row["uuid"]: row["parent_provider_uuid"] for row in rows
        }

    def find_missing_names(self, kind: str, path: str, part: ProviderPart[Any]) -> list[str]:
        """Return the custom names of a part that must be created; report unknown standard names."""
        first_users: dict[str, PlannedProvider] = {}
        for provider in self._topology.providers:
            for name in part.or_empty(provider.values):
                first_users.setdefault(name, provider)
        if not first_users:
            return []
        existing_names = {
            entry if isinstance(entry, str) else entry["name"]
            for entry in self._client.get(f"/{path}")[path]
        }
        missing_names = sorted(first_users.keys() - existing_names)
        for name in missing_names:
            if not is_custom_name(name):
                advice = did_you_mean(name, [*existing_names, f"CUSTOM_{name}"])
                text = f"the service has no {kind} {name}; custom names begin with CUSTOM_{advice}"
                self._report(first_users[name].find_line(part.name, name), text)
        return [name for name in missing_names if is_custom_name(name)]

    def resolve_uuids(self) -> None:
        """Find the uuid and the parent of each provider; report cycles."""
        for provider in self._topology.providers:
            self._uuids[provider.name] = self._find_uuid(provider)
        self._file_uuids = set(self._uuids.values())
        for provider in self._topology.providers:
            uuid = self._uuids[provider.name]
            if not provider.parent_line:
                self.parents.setdefault(uuid, None)
            elif provider.parent is None:
                self.parents[uuid] = None
            else:
                parent = self._resolve(provider.parent, provider.parent_line)
                self.parents[uuid] = parent or self.parents.get(uuid)
        places = order_trees(self.parents)
        for provider in self._topology.providers:
            if provider.parent_line and self._uuids[provider.name] not in places:
                text = f"{provider.name!r} would be in or below a cycle of parents"
                self._report(provider.parent_line, text)

    def _find_uuid(self, provider: PlannedProvider) -> str:
        by_name = self._by_name.get(provider.name)
        if not provider.has_explicit_uuid:
            if by_name is None and provider.uuid in self._by_uuid:
                current_name = self._by_uuid[provider.uuid]["name"]
                self._report(
                    provider.line,
                    f"{provider.name!r} was renamed to {current_name!r} since it was loaded; give its "
                    f"uuid to name it back, or {provider.name!r} another uuid",
                )
            return by_name or provider.uuid
        if by_name is not None and by_name != provider.uuid:
            text = f"{provider.name!r} exists with uuid {by_name}, and a uuid cannot be changed"
            self._report(provider.line, text)
        return provider.uuid

    def _resolve(self, name: str, line: int) -> str | None:
        """Return the uuid of a provider, given by name or uuid; report an unknown one."""
        uuid = self._uuids.get(name) or self._by_name.get(name)
        if uuid is None:
            uuid = normalised_uuid(name)
            if uuid not in self._by_uuid and uuid not in self._file_uuids:
                self._report(
                    line, f"there is no provider {name!r}, neither here nor in the service"
                )
                return None
        return uuid

    def read_states(self, progress: Callable[[int, int], None]) -> Mapping[str, Any]:
        """Read the existing providers of the file, with the parts in the file, by uuid."""
        part_names = {name for provider in self._topology.providers for name in provider.values}
        uuids = [uuid for uuid in self._uuids.values() if uuid in self._by_uuid]
        include = [part.name for part in PARTS if part.name in part_names]
        return read_rows(self._client, uuids, include, progress=progress)

    def plan_change(self, provider: PlannedProvider, rows: Mapping[str, Any]) -> PlannedChange:
        values = rename_consumed(
            provider.values, lambda name: self._resolve(name, provider.line) or ""
        )
        uuid = self._uuids[provider.name]
        present_state = make_state(rows[uuid], provider.parts) if uuid in rows else None
        new_state = ProviderState(uuid, provider.name, self.parents[uuid], values=values)
        change = PlannedChange(present_state, new_state, self._prune, provider.line)
        for name, fields in INVENTORIES.or_empty(change.after.values).items():
            if "total" not in fields:
                text = f"{provider.name}: a new inventory of {name} needs a total"
                self._report(provider.line, text)
        return change

    def plan_deletions(self) -> list[PlannedChange]:
        """Return the deletions, deepest first: descendants of providers with `children` that are not in the file."""
        if not self._prune:
            return []
        listing_uuids = {
            self._uuids[provider.name]
            for provider in self._topology.providers
            if provider.children is not None
        }
        descendants: dict[str, None] = {}
        for uuid in order_trees(self.parents):
            parent = self.parents[uuid]
            if parent in descendants or parent in listing_uuids:
                descendants[uuid] = None
        return [
            PlannedChange(make_state(self._by_uuid[uuid], ()), None)
            for uuid in reversed(descendants)
            if uuid not in self._file_uuids
        ]

    def collect_names(self) -> dict[str, str]:
        name_by_uuid = {uuid: row["name"] for uuid, row in self._by_uuid.items()}
        return name_by_uuid | {uuid: name for name, uuid in self._uuids.items()}

    def _report(self, line: int, text: str) -> None:
        self.problems.append(DocumentFault(line, text))


@dataclass(slots=True)
class LoadOutcome:
    """The result of a plan: changes of providers that now match the file, and reasons of refusals by provider uuid."""

    plan: LoadPlan
    applied_changes: list[PlannedChange] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    is_interrupted: bool = False

    def list_names(self, action: Action) -> list[str]:
        """Return the names of the providers with an action."""
        return [change.after.name for change in self.applied_changes if change.action is action]

    @property
    def refusal_texts(self) -> list[str]:
        """Texts of the refusals, each with its place in the file."""
        return [
            f"{change.place}: {self.refusals[change.after.uuid]}"
            for change in self.plan.changes
            if change.after.uuid in self.refusals
        ]


def apply_topology(client: Client, topology: Topology, *, prune: bool = False) -> LoadOutcome:
    """Plan and apply the changes of a topology; a second call changes nothing.

    Raises:
        TopologyError: before anything is written, with all faults.
    """
    return apply_plan(client, make_plan(client, topology, prune=prune))


def apply_plan(
    client: Client,
    plan: LoadPlan,
    *,
    dry_run: bool = False,
    progress: Progress = ignore_progress,
) -> LoadOutcome:
    """Apply a plan: whole trees, then deletions. With `dry_run`, predict the outcome and write nothing.

    A rejected tree does not stop the others. After an interruption (`KeyboardInterrupt`) the outcome has the
    written trees.
    """
    outcome = LoadOutcome(plan)
    writes = [change for change in plan.changes if change.action is not Action.DELETE]
    deletions = [change for change in plan.changes if change.action is Action.DELETE]
    outcome.applied_changes += [change for change in writes if change.action is Action.KEEP]

    def note(changes: Sequence[PlannedChange]) -> None:
        outcome.applied_changes += changes
        progress("writing", len(outcome.applied_changes), len(plan.changes))

    try:
        trees = group_by_tree(writes, plan.parents)
        outcome.refusals |= write_trees(client, trees, dry_run=dry_run, note=note)
        delete = _predict_refusals if dry_run else _delete
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
    """Delete providers level by level; return the reasons of refusals by uuid."""
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
        run_parallel(delete, list(level))
    return refusals


def _predict_refusals(
    client: Client,
    deletions: Sequence[PlannedChange],
    parents: Mapping[str, str | None],
) -> dict[str, str]:
    """Return the reasons for which the endpoint will reject deletions, by uuid."""
    uuids = [change.after.uuid for change in deletions]
    rows = read_rows(client, uuids, ["usages"])
    remaining_parents = {parents[uuid] for uuid in parents.keys() - set(uuids)}
    refusals: dict[str, str] = {}
    for uuid in uuids:
        usages = rows[uuid]["usages"] if uuid in rows else {}
        used_amounts = ", ".join(
            f"{usages[name]} {name}" for name in sorted(usages) if usages[name]
        )
        if used_amounts:
            refusals[uuid] = f"cannot be deleted, as {used_amounts} of it are in use"
        elif uuid in remaining_parents:
            refusals[uuid] = "cannot be deleted, as a provider below it stays"
        if uuid in refusals:
            remaining_parents.add(parents[uuid])
    return refusals
