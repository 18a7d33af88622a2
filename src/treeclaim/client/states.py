# SPDX-License-Identifier: Apache-2.0
"""Present and wanted states of providers: reads, merges, compares and formats them."""

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
    PartValues,
    ProviderPart,
)
from treeclaim.model.provider import AMOUNTS, AttributeValue, Inventory

UUIDS_AT_ONCE = 200
"""Most uuids in a URL, which then has 8 kB."""


@dataclass(frozen=True, slots=True)
class ProviderState:
    """The present or the wanted state of a provider.

    Attributes:
        parent: Uuid of the parent; None for a root.
        generation: The generation at the time of reading.
        values: Values of parts by name.
    """

    uuid: str
    name: str
    parent: str | None
    generation: int = 0
    values: PartValues = field(default_factory=dict)


def compute_capacity(fields: Mapping[str, Any]) -> int:
    """Return the allocatable amount of an inventory (contract page 30, section 1)."""
    return int((fields["total"] - fields["reserved"]) * fields["allocation_ratio"])


def omit_empty_consumes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an inventory without an empty `consumes`."""
    return {name: value for name, value in fields.items() if name != "consumes" or value}


def make_state(row: Mapping[str, Any], parts: Iterable[ProviderPart[Any]]) -> ProviderState:
    """Convert a row of a list of providers, with the parts that it includes."""
    return ProviderState(
        row["uuid"],
        row["name"],
        row.get("parent_provider_uuid"),
        row["generation"],
        {part.name: part.from_json(row[part.name]) for part in parts},
    )


def read_rows(
    client: Client,
    uuids: Sequence[str],
    include: Sequence[str],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[str, dict[str, Any]]:
    """Read the existing providers in batches; return their rows of GET /treeclaim/providers by uuid.

    Each row is consistent. `progress` is called with the numbers of read and of all providers.
    """
    client.require_extension("reading many providers at once")

    def read(batch: Sequence[str]) -> list[dict[str, Any]]:
        return list(client.provider_states(include, uuid=f"in:{','.join(batch)}"))

    def report(batch_count: int, _: int) -> None:
        progress(min(batch_count * UUIDS_AT_ONCE, len(uuids)), len(uuids))

    batches = list(split_batches(uuids, UUIDS_AT_ONCE))
    pages = run_parallel(read, batches, progress=report)
    return {row["uuid"]: row for rows in pages for row in rows}


_DEFAULTS: Mapping[str, Any] = {
    field.name: field.default
    for field in fields(Inventory)
    if field.name in AMOUNTS and field.default is not MISSING
}
"""Defaults of the fields of a new inventory (contract page 30, section 1)."""


def merge_part(
    part: ProviderPart[Any], present_value: Any, loaded_value: Any, *, prune: bool
) -> Any:
    """Return the value of a part after a load; an empty loaded value empties it, `prune` removes omitted entries."""
    if part is INVENTORIES:
        loaded_value = {
            name: _merge_inventory(present_value.get(name, {}), new_fields)
            for name, new_fields in loaded_value.items()
        }
    return loaded_value if prune or not loaded_value else present_value | loaded_value


def _merge_inventory(
    present_fields: Mapping[str, Any], loaded_fields: Mapping[str, Any]
) -> dict[str, Any]:
    merged_fields = {**_DEFAULTS, **present_fields, **loaded_fields}
    # Without the extension, inventories have no `consumes`.
    return merged_fields if "consumes" in present_fields else omit_empty_consumes(merged_fields)


def format_changes(old_texts: Mapping[str, str], new_texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the differences of two values, sorted by field, such as `~ inventories.VCPU.total: 8 → 16`.

    The sign is `+` for an addition, `-` for a removal, `~` for a changed value.
    """
    for field_name in sorted(old_texts.keys() | new_texts.keys()):
        old_text, new_text = old_texts.get(field_name), new_texts.get(field_name)
        if old_text != new_text:
            sign = "+" if old_text is None else "-" if new_text is None else "~"
            values = " → ".join(filter(None, (old_text, new_text)))
            yield f"{sign} {field_name}: {values}" if values else f"{sign} {field_name}"


def format_value(
    part: ProviderPart[Any], value: Any, compared_value: Any, names: AggregateNames
) -> dict[str, str]:
    """Return the texts of a part's value by field; a name is a field with an empty text.

    Default values are omitted for inventories that the compared value lacks.
    """
    if part is INVENTORIES:
        return {
            f"{part.name}.{name}.{field_name}": text
            for name, fields in value.items()
            for field_name, text in format_inventory(fields, with_defaults=name in compared_value)
        }
    if isinstance(part, NameSet):
        return {f"{part.single} {format_aggregate(names, item)}": "" for item in value}
    return {f"{part.single} {name}": format_attribute(entry) for name, entry in value.items()}


def format_attribute(value: AttributeValue) -> str:
    """Return a value as text; quote strings, without escapes for Unicode."""
    return json.dumps(value, ensure_ascii=False)


def format_inventory(
    inventory: Mapping[str, Any], *, with_defaults: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield names and texts of an inventory's fields: the total, then fields without or with defaults."""
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
