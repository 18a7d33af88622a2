# SPDX-License-Identifier: Apache-2.0
"""Finds what pruning cannot remove, because allocations or other inventories depend on it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from treeclaim.client.client import Client
from treeclaim.client.loading.changes import Action, PlannedChange
from treeclaim.client.states import rows_in_bulk
from treeclaim.client.topology.tree import find_descendants
from treeclaim.client.transport import in_parallel
from treeclaim.model.parts import INVENTORIES


@dataclass(frozen=True, slots=True)
class _Use:
    """What of some providers is in use.

    Attributes:
        usages: Used amounts by class, by provider.
        consumers: Uuids of the providers with an inventory that consumes another one, by provider and class
            of the consumed inventory.
    """

    usages: Mapping[str, Mapping[str, int]]
    consumers: Mapping[tuple[str, str], Sequence[str]]


def with_refusals(
    client: Client,
    changes: Sequence[PlannedChange],
    parents: Mapping[str, str | None],
    *,
    threads: int,
) -> list[PlannedChange]:
    """Return changes, each with the reason for which the service will refuse it.

    Args:
        client: The endpoint.
        changes: Those of a plan that prunes; deletions come deepest first.
        parents: Uuids of parents of all providers, as they will be.
        threads: How many calls are made at once.

    Raises:
        ClientError: if a call fails.
    """
    removed = {
        change.after.uuid: gone
        for change in changes
        if change.after is not None and (gone := _removed_classes(change))
    }
    going = {
        change.before.uuid
        for change in changes
        if change.action is Action.DELETE and change.before is not None
    }
    if not (removed or going):
        return list(changes)
    concerned = {*removed, *going, *find_descendants(parents, set(removed))}
    use = _read_use(client, sorted(concerned), threads)
    children: dict[str, set[str]] = defaultdict(set)
    for uuid, parent in parents.items():
        if parent in going:
            children[parent].add(uuid)
    judged = []
    for change in changes:
        if change.action is Action.DELETE and change.before is not None:
            uuid = change.before.uuid
            refusal = _deletion_refusal(use.usages.get(uuid, {}), len(children[uuid]))
            if refusal is None:
                children[parents[uuid] or ""].discard(uuid)
        else:
            refusal = _removal_refusal(change, removed, use)
        judged.append(replace(change, refusal=refusal))
    return judged


def _removed_classes(change: PlannedChange) -> set[str]:
    if change.before is None or change.after is None:
        return set()
    after = INVENTORIES.value_in(change.after.values)
    if after is None:
        return set()
    return INVENTORIES.or_empty(change.before.values).keys() - after.keys()


def _deletion_refusal(usages: Mapping[str, int], children: int) -> str | None:
    if used := _in_words(usages, usages):
        return f"cannot be deleted, as {used} of it are in use"
    if children:
        return "cannot be deleted, as a provider below it stays"
    return None


def _removal_refusal(
    change: PlannedChange, removed: Mapping[str, Iterable[str]], use: _Use
) -> str | None:
    if change.after is None:
        return None
    uuid = change.after.uuid
    classes = sorted(removed.get(uuid, ()))
    if used := _in_words(use.usages.get(uuid, {}), classes):
        return f"cannot be changed, as {used} to be removed are in use"
    for name in classes:
        # Consumers are changed and deleted after what they consume.
        if any(consumer != uuid for consumer in use.consumers.get((uuid, name), ())):
            return f"cannot be changed, as other inventories consume its {name}"
    return None


def _in_words(usages: Mapping[str, int], classes: Iterable[str]) -> str:
    return ", ".join(f"{usages[name]} {name}" for name in sorted(classes) if usages.get(name))


def _read_use(client: Client, uuids: Sequence[str], threads: int) -> _Use:
    rows = rows_in_bulk(client, uuids, ["inventories", "usages"], threads=threads)
    if rows is None:
        # An endpoint without bulk calls has no consumption.
        paths = [f"/resource_providers/{uuid}/usages" for uuid in uuids]
        documents = in_parallel(client.get, paths, threads=threads)
        usages = [document["usages"] for document in documents]
        return _Use(dict(zip(uuids, usages, strict=True)), {})
    consumers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows.values():
        for entry in _consumed_by(row):
            consumers[entry["provider"], entry["resource_class"]].append(row["uuid"])
    return _Use({uuid: row["usages"] for uuid, row in rows.items()}, consumers)


def _consumed_by(row: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for fields in row["inventories"].values():
        yield from fields.get("consumes", ())
