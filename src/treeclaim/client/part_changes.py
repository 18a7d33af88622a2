# SPDX-License-Identifier: Apache-2.0
"""Merges and compares the values of a provider's parts, for topology files and copies."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

from treeclaim.model.attributes import AttributeValue
from treeclaim.model.inventory import AMOUNTS, Inventory
from treeclaim.model.parts import INVENTORIES, Names, ProviderPart, without_consumption

_DEFAULTS: Mapping[str, Any] = {
    field.name: field.default
    for field in fields(Inventory)
    if field.name in AMOUNTS and field.default is not MISSING
}
"""Default values of the fields of a new inventory (contract page 30, section 1)."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A difference in one field.

    Attributes:
        sign: `+` for what comes, `-` for what goes, `~` for what has another value.
        field: Such as `inventories.VCPU.total`.
        old, new: In words; None where there is none.
    """

    sign: str
    field: str
    old: str | None = None
    new: str | None = None

    def __str__(self) -> str:
        """Write it in a line."""
        if self.old is not None and self.new is not None:
            return f"{self.sign} {self.field}: {self.old} → {self.new}"
        value = self.new if self.old is None else self.old
        return f"{self.sign} {self.field}" + ("" if value is None else f": {value}")


def merge(part: ProviderPart[Any], before: Any, given: Any, *, prune: bool) -> Any:
    """Return the value of a part after a topology file was loaded.

    Args:
        part: The part.
        before: The present value.
        given: The value in the file; an empty one empties the part.
        prune: Whether to remove what the file does not list.
    """
    if part is INVENTORIES:
        given = {name: _merge_inventory(before.get(name, {}), new) for name, new in given.items()}
    return given if prune or not given else before | given


def _merge_inventory(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**_DEFAULTS, **before, **given}
    consumes_nothing = merged.get("consumes") == [] and not before.get("consumes")
    return without_consumption(merged) if consumes_nothing else merged


def find_differences(part: ProviderPart[Any], before: Any, after: Any) -> Iterator[FieldChange]:
    """Yield the differences of two values of a part, in the order in which they are shown."""
    if part is INVENTORIES:
        yield from _compare_inventories(before, after)
    elif isinstance(part, Names):
        for sign, names in (("+", after - before), ("-", before - after)):
            for name in sorted(names):
                yield FieldChange(sign, f"{part.single} {name}")
    else:
        old, new = (
            {name: attribute_in_words(value) for name, value in values.items()}
            for values in (before, after)
        )
        for name in sorted(old.keys() | new.keys()):
            was, now = old.get(name), new.get(name)
            if was != now:
                sign = "+" if was is None else "-" if now is None else "~"
                yield FieldChange(sign, f"{part.single} {name}", was, now)


def attribute_in_words(value: AttributeValue) -> str:
    """Return a value as people read it; a text has quotes, in which every character is as it is."""
    return json.dumps(value, ensure_ascii=False)


def _compare_inventories(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> Iterator[FieldChange]:
    """Yield the inventories that come or go, and each field that changes."""
    for name in sorted(before.keys() | after.keys()):
        path = f"{INVENTORIES.name}.{name}"
        if name not in before:
            yield FieldChange("+", path, new=_inventory_in_words(after[name]))
        elif name not in after:
            yield FieldChange("-", path, _inventory_in_words(before[name]))
        else:
            for field, new in after[name].items():
                if before[name].get(field) != new:
                    old = _field_in_words(before[name].get(field))
                    yield FieldChange("~", f"{path}.{field}", old, _field_in_words(new))


def _field_in_words(value: Any) -> str:
    """Return a field of an inventory in words: a number, or what each unit consumes."""
    return _consumption_in_words(value) or "nothing" if isinstance(value, list) else str(value)


def _consumption_in_words(consumes: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{entry['amount']} {entry['resource_class']} of {entry['provider']}" for entry in consumes
    )


def _inventory_in_words(inventory: Mapping[str, Any]) -> str:
    """Return an inventory in words: its total, and every unusual value."""
    unusual = [
        f"{field} {inventory[field]}"
        for field, usual in _DEFAULTS.items()
        if inventory.get(field, usual) != usual
    ]
    if inventory.get("consumes"):
        unusual.append(f"each consumes {_consumption_in_words(inventory['consumes'])}")
    return ", ".join([f"total {inventory['total']}", *unusual])
