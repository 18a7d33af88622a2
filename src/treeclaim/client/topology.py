# SPDX-License-Identifier: Apache-2.0
"""Provider trees as people write them down: the files of `treeclaim load` (docs/loading.md)."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_NAMESPACE = uuid.UUID("6f1d6c1e-3c5e-5c55-9a3b-6e8f1f0a7c11")
"""Names in a file become uuids in this namespace, the same ones each time."""

_MEMBERS = {"name", "uuid", "count", "inventories", "traits", "aggregates", "children"}
_AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
_DEFAULTS: Mapping[str, Any] = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 2_147_483_647,
    "step_size": 1,
    "allocation_ratio": 1.0,
}


class TopologyError(Exception):
    """A file cannot be understood; the message says where and why."""


@dataclass(frozen=True, slots=True)
class PlannedProvider:
    """A provider as a file wants it.

    Attributes:
        name: Unique.
        uuid: Given, or made from the name.
        parent: Name of the parent, None for a root.
        inventories: By resource class, all fields of each.
        traits: Names.
        aggregates: Uuids.
    """

    name: str
    uuid: str
    parent: str | None
    inventories: Mapping[str, Mapping[str, Any]]
    traits: frozenset[str]
    aggregates: frozenset[str]


def aggregate_uuid(name: str) -> str:
    """Return the uuid of an aggregate, which a file may name in words."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, f"aggregate {name}"))


def read_topology(path: Path) -> list[PlannedProvider]:
    """Read a file; parents come before their children.

    Raises:
        TopologyError: if it cannot be read or understood.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TopologyError(f"{path}: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("providers"), list):
        raise TopologyError(f"{path}: a mapping with a list 'providers' is expected")
    planned: list[PlannedProvider] = []
    for number, entry in enumerate(document["providers"]):
        planned.extend(_expanded(entry, None, f"{path}: providers[{number}]"))
    names = [one.name for one in planned]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TopologyError(f"{path}: these names stand for several providers: {repeated}")
    return planned


def _expanded(entry: Any, parent: str | None, where: str) -> Iterator[PlannedProvider]:
    """Yield the providers of an entry: as many as its count says, each with its children."""
    if not isinstance(entry, dict):
        raise TopologyError(f"{where}: a mapping is expected, not {entry!r}")
    unknown = sorted(map(str, entry.keys() - _MEMBERS))
    if unknown:
        raise TopologyError(f"{where}: unknown {unknown}; known are {sorted(_MEMBERS)}")
    count = entry.get("count", 1)
    if not isinstance(count, int) or count < 1:
        raise TopologyError(f"{where}: count must be a whole number of at least 1")
    for number in range(1, count + 1):
        one = _planned(entry, parent, number, where)
        yield one
        for position, child in enumerate(entry.get("children") or []):
            yield from _expanded(child, one.name, f"{where}.children[{position}]")


def _planned(
    entry: Mapping[str, Any], parent: str | None, number: int, where: str
) -> PlannedProvider:
    try:
        name = str(entry["name"]).format(n=number, parent=parent or "")
    except (KeyError, IndexError, ValueError) as error:
        raise TopologyError(
            f"{where}: a name is needed, with {{n}} and {{parent}} only to fill in ({error!r})"
        ) from error
    given = entry.get("uuid")
    if given is not None and entry.get("count", 1) > 1:
        raise TopologyError(f"{where}: one uuid cannot be given to several providers")
    return PlannedProvider(
        name=name,
        uuid=str(uuid.uuid5(_NAMESPACE, name)) if given is None else str(given),
        parent=parent,
        inventories={
            str(resource_class): _inventory(amounts, f"{where}.inventories.{resource_class}")
            for resource_class, amounts in (entry.get("inventories") or {}).items()
        },
        traits=frozenset(map(str, entry.get("traits") or ())),
        aggregates=frozenset(aggregate_uuid(str(one)) for one in entry.get("aggregates") or ()),
    )


def _inventory(amounts: Any, where: str) -> dict[str, Any]:
    """Read an inventory: a total, or a mapping with the fields of the API."""
    if isinstance(amounts, int):
        amounts = {"total": amounts}
    if not isinstance(amounts, dict) or "total" not in amounts:
        raise TopologyError(f"{where}: a total or a mapping with a total is expected")
    unknown = sorted(map(str, amounts.keys() - set(_AMOUNTS)))
    if unknown:
        raise TopologyError(f"{where}: unknown {unknown}; known are {list(_AMOUNTS)}")
    return {**_DEFAULTS, **amounts}
