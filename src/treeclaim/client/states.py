# SPDX-License-Identifier: Apache-2.0
"""Providers as an endpoint has them, or as they are to be: read, merged and compared."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from treeclaim.client.aggregates import AggregateNames, format_aggregate
from treeclaim.client.client import Client
from treeclaim.client.session import run_parallel, split_batches
from treeclaim.model.parts import (
    INVENTORIES,
    NameSet,
    ProviderPart,
    Values,
)
from treeclaim.model.provider import AMOUNTS, AttributeValue, Inventory

UUIDS_AT_ONCE = 200
"""Providers in one URL, which then has 8 kB."""


@dataclass(frozen=True, slots=True)
class State:
    """The present or the wanted state of a provider.

    Attributes:
        uuid, name: The provider's UUID and name.
        parent: Uuid of the parent, None for a root.
        generation: The generation when the state was read.
        values: The present or wanted values of parts.
    """

    uuid: str
    name: str
    parent: str | None
    generation: int = 0
    values: Values = field(default_factory=dict)


def compute_capacity(fields: Mapping[str, Any]) -> int:
    """Return how much of an inventory can be allocated (contract page 30, section 1)."""
    return int((fields["total"] - fields["reserved"]) * fields["allocation_ratio"])


def omit_empty_consumes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an inventory for people: without `consumes` if it consumes nothing."""
    return {name: value for name, value in fields.items() if name != "consumes" or value}


def make_state(row: Mapping[str, Any], parts: Iterable[ProviderPart[Any]]) -> State:
    """Return a provider as a list of them has it, with some parts."""
    return State(
        row["uuid"],
        row["name"],
        row.get("parent_provider_uuid"),
        row["generation"],
        {part.name: part.read(row[part.name]) for part in parts},
    )


def read_rows(
    client: Client,
    uuids: Sequence[str],
    include: Sequence[str],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[str, dict[str, Any]]:
    """Read providers by some hundred in a call, each as it is at one moment.

    Args:
        client: The endpoint.
        uuids: UUIDs of the providers; those that do not exist are left out.
        include: Parts, as GET /treeclaim/providers has them.
        progress: Called with the number of providers that are read, and the number of all.

    Returns:
        Rows of GET /treeclaim/providers by uuid.
    """
    client.require_extension("reading many providers at once")

    def read(batch: Sequence[str]) -> list[dict[str, Any]]:
        return list(client.provider_states(include, uuid=f"in:{','.join(batch)}"))

    def report(done: int, _: int) -> None:
        progress(min(done * UUIDS_AT_ONCE, len(uuids)), len(uuids))

    batches = list(split_batches(uuids, UUIDS_AT_ONCE))
    pages = run_parallel(read, batches, progress=report)
    return {row["uuid"]: row for rows in pages for row in rows}


_DEFAULTS: Mapping[str, Any] = {
    field.name: field.default
    for field in fields(Inventory)
    if field.name in AMOUNTS and field.default is not MISSING
}
"""Default values of the fields of a new inventory (contract page 30, section 1)."""


def merge_part(part: ProviderPart[Any], before: Any, loaded: Any, *, prune: bool) -> Any:
    """Return the value of a part after a topology file was loaded.

    Args:
        part: The part.
        before: The present value.
        loaded: The value in the file; an empty one empties the part.
        prune: Whether to remove what the file does not list.
    """
    if part is INVENTORIES:
        loaded = {
            name: _merge_inventory(before.get(name, {}), new) for name, new in loaded.items()
        }
    return loaded if prune or not loaded else before | loaded


def _merge_inventory(before: Mapping[str, Any], loaded: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**_DEFAULTS, **before, **loaded}
    # Endpoints without the extension have no consumption.
    return merged if "consumes" in before else omit_empty_consumes(merged)


def format_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield the differences of two values in words, ordered by the fields.

    Each begins with its sign: `+` for an addition, `-` for a removal, `~` for another value, as in
    `~ inventories.VCPU.total: 8 → 16`.
    """
    for field_name in sorted(before.keys() | after.keys()):
        old, new = before.get(field_name), after.get(field_name)
        if old != new:
            sign = "+" if old is None else "-" if new is None else "~"
            values = " → ".join(filter(None, (old, new)))
            yield f"{sign} {field_name}: {values}" if values else f"{sign} {field_name}"


def format_value(
    part: ProviderPart[Any], value: Any, other: Any, names: AggregateNames
) -> dict[str, str]:
    """Return what a part has in words: values by fields; names have no value.

    Fields with their default value are left out of inventories that the other value lacks.
    """
    if part is INVENTORIES:
        return {
            f"{part.name}.{name}.{field_name}": text
            for name, fields in value.items()
            for field_name, text in format_inventory(fields, with_defaults=name in other)
        }
    if isinstance(part, NameSet):
        return {f"{part.single} {format_aggregate(names, item)}": "" for item in value}
    return {f"{part.single} {name}": format_attribute(entry) for name, entry in value.items()}


def format_attribute(value: AttributeValue) -> str:
    """Return a value as people read it; a text has quotes, in which every character is as it is."""
    return json.dumps(value, ensure_ascii=False)


def format_inventory(
    inventory: Mapping[str, Any], *, with_defaults: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the total of an inventory, and its other fields in words; the default values only if asked."""
    yield "total", str(inventory.get("total"))
    for field_name, default in _DEFAULTS.items():
        value = inventory.get(field_name, default)
        if with_defaults or value != default:
            yield field_name, str(value)
    if inventory.get("consumes"):
        yield (
            "consumes",
            ", ".join(
                f"{entry['amount']} {entry['resource_class']} of {entry['provider']}"
                for entry in inventory["consumes"]
            ),
        )
