# SPDX-License-Identifier: Apache-2.0
"""Plans the changes from an endpoint to a file, and finds all that the endpoint would refuse."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from treeclaim.client.aggregates import LONGEST_NAME, AggregateNames
from treeclaim.client.client import Client
from treeclaim.client.loading.changes import (
    Action,
    PlannedChange,
    wanted,
)
from treeclaim.client.loading.use import with_refusals
from treeclaim.client.states import (
    CONSUMPTION,
    State,
    capacity_of,
    changed_parts,
    is_moved,
    need_of,
    read_state,
    rows_in_bulk,
    state_of,
)
from treeclaim.client.topology import PlannedProvider, Problem, Topology, TopologyError
from treeclaim.client.topology.file import cycle_problem
from treeclaim.client.topology.tree import count_ancestors, find_cycles, find_descendants
from treeclaim.client.transport import THREADS, in_parallel
from treeclaim.client.versions import Need
from treeclaim.model.microversions import Feature
from treeclaim.model.names import normalised_uuid
from treeclaim.model.parts import INVENTORIES, PARTS

_CUSTOM = "CUSTOM_"


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What would be done.

    Attributes:
        source: Name of the file.
        changes: One for each provider of the file, and one for each that goes; in order.
        traits, classes: Custom names that have to be made first.
        aggregates: Names of aggregates that have none yet: the file's words, by uuid.
        names: Names of all providers by uuid, as they will be.
        prune: Whether what is not listed goes.
    """

    source: str
    changes: Sequence[PlannedChange]
    traits: Sequence[str]
    classes: Sequence[str]
    aggregates: Mapping[str, str]
    names: Mapping[str, str]
    prune: bool


def make_plan(
    client: Client,
    topology: Topology,
    *,
    prune: bool = False,
    threads: int = THREADS,
    progress: Callable[[str, int, int], None] = lambda _stage, _done, _total: None,
) -> LoadPlan:
    """Plan what a file would change; write nothing.

    Raises:
        TopologyError: with all that the endpoint would refuse, as far as can be known.
        ClientError: if a call fails.
    """
    client.versions.require(Need("loading", Feature.AGGREGATE_GENERATION))
    planner = _Planner(client, topology, prune=prune)
    traits, classes = planner.missing_names()
    planner.place()
    states = planner.states(threads, lambda done, total: progress("reading", done, total))
    changes = [
        planner.change(planned, before)
        for planned, before in zip(map(planner.resolved, topology.providers), states, strict=True)
    ]
    if planner.problems:
        raise TopologyError(topology.source, planner.problems)
    changes += planner.deletions()
    if prune:
        changes = with_refusals(client, changes, planner.parents, threads=threads)
    return LoadPlan(
        topology.source,
        changes,
        traits,
        classes,
        _unnamed(client, topology),
        planner.names(),
        prune,
    )


def _unnamed(client: Client, topology: Topology) -> dict[str, str]:
    """Return the words for aggregates that have no name yet: a renamed one keeps its name.

    Raises:
        ClientError: if the call fails.
    """
    names = AggregateNames.kept_by(client) if topology.aggregates else None
    if names is None:
        return {}
    return {
        uuid: word
        for uuid, word in sorted(topology.aggregates.items())
        if names.name_of(uuid) is None and len(word) <= LONGEST_NAME
    }


def with_problems_there(client: Client, error: TopologyError) -> TopologyError:
    """Return the problems of a file with those that only the endpoint knows beside them.

    Raises:
        ClientError: if a call fails.
    """
    if error.readable is None:
        return error
    try:
        make_plan(client, error.readable)
    except TopologyError as more:
        return TopologyError(error.readable.source, [*error.problems, *more.problems])
    return error


class _Planner:
    """Compares the file with the endpoint."""

    def __init__(self, client: Client, topology: Topology, *, prune: bool) -> None:
        self.problems: list[Problem] = []
        self._client = client
        self._topology = topology
        self._prune = prune
        listed = client.providers()
        self._by_uuid = {row["uuid"]: row for row in listed}
        self._by_name = {row["name"]: row["uuid"] for row in listed}
        self._uuids: dict[str, str] = {}
        """Uuids of the file's providers by name."""
        self._in_file: set[str] = set()
        self.parents: dict[str, str | None] = {
            row["uuid"]: row.get("parent_provider_uuid") for row in listed
        }
        """Uuids of parents, as they will be."""
        self._depths: dict[str, int] = {}

    def missing_names(self) -> tuple[list[str], list[str]]:
        """Return the custom traits and classes to create; standard names must exist."""
        creatable: list[list[str]] = []
        for what, wanted_names, path in (
            ("trait", self._topology.traits, "traits"),
            ("resource class", self._topology.classes, "resource_classes"),
        ):
            if not wanted_names:
                creatable.append([])
                continue
            known = {
                entry if isinstance(entry, str) else entry["name"]
                for entry in self._client.get(f"/{path}")[path]
            }
            missing = sorted(set(wanted_names) - known)
            for name in missing:
                if not name.startswith(_CUSTOM):
                    near = difflib.get_close_matches(name, [*known, f"{_CUSTOM}{name}"], 1)
                    self._say(
                        wanted_names[name],
                        f"the service knows no {what} {name}; its own begin with {_CUSTOM}"
                        + (f"; did you mean {near[0]}?" if near else ""),
                    )
            creatable.append([name for name in missing if name.startswith(_CUSTOM)])
        traits, classes = creatable
        return traits, classes

    def place(self) -> None:
        """Find each provider's uuid and parent, and check that the trees have no circle."""
        for planned in self._topology.providers:
            self._uuids[planned.name] = self._uuid_of(planned)
        self._in_file = set(self._uuids.values())
        for planned in self._topology.providers:
            uuid = self._uuids[planned.name]
            if planned.parent is None:
                self.parents.setdefault(uuid, None)
            elif planned.parent.name is None:
                self.parents[uuid] = None
            else:
                parent = self._parent_of(planned, planned.parent.name)
                self.parents[uuid] = parent or self.parents.get(uuid)
        self._depths = count_ancestors(self.parents)
        self._check_circles()

    def _uuid_of(self, planned: PlannedProvider) -> str:
        by_name = self._by_name.get(planned.name)
        if not planned.has_own_uuid:
            if by_name is None and planned.uuid in self._by_uuid:
                other = self._by_uuid[planned.uuid]["name"]
                self._say(
                    planned.line,
                    f"{planned.name!r} was renamed to {other!r} since it was loaded; give its "
                    f"uuid to name it back, or {planned.name!r} another uuid",
                )
            return by_name or planned.uuid
        if by_name is not None and by_name != planned.uuid:
            self._say(
                planned.line,
                f"{planned.name!r} exists with uuid {by_name}, and a uuid cannot be changed",
            )
        return planned.uuid

    def _parent_of(self, planned: PlannedProvider, name: str) -> str | None:
        uuid = self._uuids.get(name) or self._by_name.get(name)
        if uuid is None:
            canonical = normalised_uuid(name) or name
            if canonical in self._by_uuid or canonical in self._in_file:
                return canonical
            line = planned.line if planned.parent is None else planned.parent.line
            self._say(line, f"there is no provider {name!r}, neither here nor in the service")
        return uuid

    def _check_circles(self) -> None:
        in_circle = find_cycles(self.parents)
        for planned in self._topology.providers:
            if planned.parent is not None and self._uuids[planned.name] in in_circle:
                self.problems.append(cycle_problem(planned.parent, planned.name))

    def states(self, threads: int, progress: Callable[[int, int], None]) -> list[State | None]:
        """Read of each provider of the file what the file says something about."""
        providers = self._topology.providers
        spoken_of = {name for planned in providers for name in planned.values}
        parts = [part for part in PARTS if part.name in spoken_of]
        self._client.versions.require(*map(need_of, parts))
        uuids = [uuid for uuid in self._uuids.values() if uuid in self._by_uuid]
        rows = rows_in_bulk(
            self._client, uuids, [part.name for part in parts], threads=threads, progress=progress
        )
        if rows is None:
            return in_parallel(self._read, providers, threads=threads, progress=progress)
        states = [rows.get(self._uuids[planned.name]) for planned in providers]
        return [
            None if row is None else state_of(row, planned.parts)
            for row, planned in zip(states, providers, strict=True)
        ]

    def _read(self, planned: PlannedProvider) -> State | None:
        row = self._by_uuid.get(self._uuids[planned.name])
        return None if row is None else read_state(self._client, row, planned.parts)

    def resolved(self, planned: PlannedProvider) -> PlannedProvider:
        """Return a provider of the file with uuids instead of the names of those from which it consumes."""
        stock = planned.values.get(INVENTORIES.name, {})
        if not any(fields.get("consumes") for fields in stock.values()):
            return planned
        self._client.versions.require(CONSUMPTION)
        stock = {name: self._with_uuids(planned, fields) for name, fields in stock.items()}
        return replace(planned, values={**planned.values, INVENTORIES.name: stock})

    def _with_uuids(self, planned: PlannedProvider, fields: Mapping[str, Any]) -> dict[str, Any]:
        if not fields.get("consumes"):
            return dict(fields)
        entries = []
        for entry in fields["consumes"]:
            name = entry["provider"]
            consumed = (
                self._uuids.get(name) or self._by_name.get(name) or normalised_uuid(name) or name
            )
            if consumed not in self._by_uuid and consumed not in self._in_file:
                text = f"there is no provider {name!r}, neither here nor in the service"
                self._say(planned.line, text)
            entries.append({**entry, "provider": consumed})
            # Consumers are written after what they consume.
            mine = self._uuids[planned.name]
            self._depths[mine] = max(self._depths[mine], self._depths.get(consumed, 0) + 1)
        entries.sort(key=lambda entry: (entry["provider"], entry["resource_class"]))
        return {**fields, "consumes": entries}

    def change(self, planned: PlannedProvider, before: State | None) -> PlannedChange:
        """Return what is to be done for a provider of the file."""
        uuid = self._uuids[planned.name]
        change = change_of(planned, before, uuid, self.parents[uuid], prune=self._prune)
        self._check_inventories(planned, change)
        return replace(change, level=self._depths[uuid])

    def _check_inventories(self, planned: PlannedProvider, change: PlannedChange) -> None:
        inventories = {} if change.after is None else INVENTORIES.or_empty(change.after.values)
        has_zero_capacity = self._client.versions.has_feature(Feature.ZERO_CAPACITY)
        for name in INVENTORIES.or_empty(planned.values):
            fields = inventories.get(name, {})
            if "total" not in fields:
                self._say(planned.line, f"{planned.name}: a new inventory of {name} needs a total")
            elif fields["reserved"] > fields["total"]:
                self._say(
                    planned.line,
                    f"{planned.name}: of {name} {fields['reserved']} would be reserved, which is "
                    f"more than the total of {fields['total']}",
                )
            elif not has_zero_capacity and capacity_of(fields) <= 0:
                self._say(
                    planned.line,
                    f"{planned.name}: nothing of {name} would be free, which the service refuses "
                    f"before 1.{Feature.ZERO_CAPACITY}",
                )

    def deletions(self) -> list[PlannedChange]:
        """Return the providers to delete, the deepest first.

        That is all that is below a provider that lists its children, and is not in the file.
        """
        if not self._prune:
            return []
        listing = {
            self._uuids[planned.name]
            for planned in self._topology.providers
            if planned.lists_children
        }
        going = find_descendants(self.parents, listing) - self._in_file
        rows = [(self._depths[uuid], row) for uuid, row in self._by_uuid.items() if uuid in going]
        return [
            PlannedChange(Action.DELETE, state_of(row, ()), None, None, level)
            for level, row in sorted(rows, key=lambda pair: -pair[0])
        ]

    def names(self) -> dict[str, str]:
        """Return names by uuid, as they will be."""
        known = {uuid: row["name"] for uuid, row in self._by_uuid.items()}
        return known | {uuid: name for name, uuid in self._uuids.items()}

    def _say(self, line: int, text: str) -> None:
        self.problems.append(Problem(line, text))


def change_of(
    planned: PlannedProvider, before: State | None, uuid: str, parent: str | None, *, prune: bool
) -> PlannedChange:
    """Return the change of a provider.

    Args:
        planned: What the file says.
        before: As it is; None if it is not there.
        uuid: That of the provider.
        parent: That of its parent, in the end.
        prune: Whether what is not listed goes.
    """
    if before is None:
        new = State(uuid, planned.name, parent)
        return PlannedChange(
            Action.CREATE, None, wanted(new, planned, parent, prune=prune), planned
        )
    after = wanted(before, planned, parent, prune=prune)
    is_same = not is_moved(before, after) and not changed_parts(before, after)
    return PlannedChange(Action.KEEP if is_same else Action.CHANGE, before, after, planned)
