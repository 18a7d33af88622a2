# SPDX-License-Identifier: Apache-2.0
"""Brings an endpoint to what a topology says; what it says nothing about stays as it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from treeclaim.client.client import Client, retried
from treeclaim.client.topology import PlannedProvider

_CUSTOM = "CUSTOM_"
_GENERATION = "resource_provider_generation"


@dataclass(slots=True)
class Outcome:
    """What was done.

    Attributes:
        created, updated, unchanged: Names of providers.
    """

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)


def apply_topology(
    client: Client,
    planned: Sequence[PlannedProvider],
    *,
    dry_run: bool = False,
    progress: Callable[[str], None] = lambda _name: None,
) -> Outcome:
    """Create what is missing and change what differs; doing it again does nothing.

    Args:
        client: The endpoint.
        planned: What is wanted, parents first.
        dry_run: Only find out what would be done.
        progress: Called with each provider's name.

    Raises:
        ClientError: if the endpoint refuses something.
    """
    if not dry_run:
        _ensure_names(client, planned)
    present = {one["name"]: one for one in client.providers()}
    outcome = Outcome()
    for one in planned:
        progress(one.name)
        parent = None if one.parent is None else _uuid_of(one.parent, planned, present)
        if one.name not in present:
            outcome.created.append(one.name)
            if not dry_run:
                _create(client, one, parent)
            continue
        known = present[one.name]
        changes = _differences(client, one, known, parent)
        (outcome.updated if changes else outcome.unchanged).append(one.name)
        if not dry_run:
            for change in changes:
                retried(change)
    return outcome


def _ensure_names(client: Client, planned: Sequence[PlannedProvider]) -> None:
    traits = {name for one in planned for name in one.traits}
    classes = {name for one in planned for name in one.inventories}
    client.ensure_names(
        sorted(name for name in traits if name.startswith(_CUSTOM)),
        sorted(name for name in classes if name.startswith(_CUSTOM)),
    )


def _uuid_of(
    name: str, planned: Sequence[PlannedProvider], present: dict[str, dict[str, Any]]
) -> str:
    if name in present:
        return str(present[name]["uuid"])
    return next(one.uuid for one in planned if one.name == name)


def _create(client: Client, one: PlannedProvider, parent: str | None) -> None:
    body = {"name": one.name, "uuid": one.uuid}
    if parent is not None:
        body["parent_provider_uuid"] = parent
    client.call("POST", "/resource_providers", json=body)
    if one.inventories:
        _set_inventories(client, one, one.uuid)
    if one.traits:
        _set_traits(client, one, one.uuid)
    if one.aggregates:
        _set_aggregates(client, one, one.uuid)


def _differences(
    client: Client, one: PlannedProvider, known: dict[str, Any], parent: str | None
) -> list[Callable[[], None]]:
    """Return what must be done to a provider that exists."""
    uuid = known["uuid"]
    path = f"/resource_providers/{uuid}"
    changes: list[Callable[[], None]] = []
    if known["parent_provider_uuid"] != parent:
        body = {"name": one.name, "parent_provider_uuid": parent}
        changes.append(lambda: _discard(client.call("PUT", path, json=body)))
    if client.get(f"{path}/inventories")["inventories"] != one.inventories:
        changes.append(lambda: _set_inventories(client, one, uuid))
    if set(client.get(f"{path}/traits")["traits"]) != one.traits:
        changes.append(lambda: _set_traits(client, one, uuid))
    if set(client.get(f"{path}/aggregates")["aggregates"]) != one.aggregates:
        changes.append(lambda: _set_aggregates(client, one, uuid))
    return changes


def _discard(_response: object) -> None:
    """Take an answer that says nothing new."""


def _set_inventories(client: Client, one: PlannedProvider, uuid: str) -> None:
    _put(client, uuid, "inventories", {"inventories": one.inventories})


def _set_traits(client: Client, one: PlannedProvider, uuid: str) -> None:
    _put(client, uuid, "traits", {"traits": sorted(one.traits)})


def _set_aggregates(client: Client, one: PlannedProvider, uuid: str) -> None:
    _put(client, uuid, "aggregates", {"aggregates": sorted(one.aggregates)})


def _put(client: Client, uuid: str, part: str, body: dict[str, Any]) -> None:
    path = f"/resource_providers/{uuid}"
    generation = client.get(path)["generation"]
    client.call("PUT", f"{path}/{part}", json=body | {_GENERATION: generation})
