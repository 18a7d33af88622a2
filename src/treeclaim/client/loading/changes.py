# SPDX-License-Identifier: Apache-2.0
"""The present and the wanted state of a provider, and their difference field by field."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from treeclaim.client.topology.planned import PlannedProvider

DEFAULTS: Mapping[str, Any] = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 2_147_483_647,
    "step_size": 1,
    "allocation_ratio": 1.0,
}
"""Of an inventory that is new (contract page 30, section 1)."""

Inventories = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class State:
    """The present or the wanted state of a provider.

    Attributes:
        uuid, name: Of the provider.
        parent: Uuid of the parent, None for a root.
        generation: That the service had when this was read.
        inventories: All fields by resource class; None if not read.
        traits: Names, likewise.
        aggregates: Uuids, likewise.
    """

    uuid: str
    name: str
    parent: str | None
    generation: int = 0
    inventories: Inventories | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[str] | None = None


class Action(Enum):
    """An action on a provider, with its sign in a difference."""

    CREATE = "+"
    CHANGE = "~"
    DELETE = "-"
    KEEP = " "


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A difference in one field.

    Attributes:
        sign: That of the action.
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


@dataclass(frozen=True, slots=True)
class Change:
    """A planned change of a provider.

    Attributes:
        action: What kind of thing.
        before: As it is; None if it is not there.
        after: As it will be; None if it is deleted.
        planned: What the file says; None for a deletion.
        level: Generations above it, in the end.
    """

    action: Action
    before: State | None
    after: State | None
    planned: PlannedProvider | None
    level: int = 0

    @property
    def name(self) -> str:
        """Name of the provider, as it will be."""
        known = self.after or self.before
        return "" if known is None else known.name

    def fields(self, names: Mapping[str, str]) -> list[FieldChange]:
        """Return the differences.

        Args:
            names: Names of providers by uuid, to name parents.
        """
        if self.after is None:
            return []
        before = self.before or State(self.after.uuid, self.after.name, None)
        return list(_differences(before, self.after, names))


def wanted(before: State, planned: PlannedProvider, parent: str | None, *, prune: bool) -> State:
    """Return the wanted state of a provider.

    What the file says nothing about stays; what is given as empty is emptied; what a part of the
    file does not list goes only where pruning.

    Args:
        before: As it is; one that is new has no parts.
        planned: What the file says.
        parent: Uuid of its parent in the end.
        prune: Whether to remove what is not listed.
    """
    return replace(
        before,
        name=planned.name,
        parent=parent,
        inventories=_inventories(before.inventories or {}, planned.inventories, prune=prune),
        traits=_names(before.traits, planned.traits, prune=prune),
        aggregates=_names(before.aggregates, planned.aggregates, prune=prune),
    )


def _inventories(
    before: Inventories, planned: Inventories | None, *, prune: bool
) -> Inventories | None:
    if planned is None:
        return None
    changed = {
        name: {**DEFAULTS, **before.get(name, {}), **fields} for name, fields in planned.items()
    }
    return changed if prune or not planned else {**before, **changed}


def _names(
    before: frozenset[str] | None, planned: frozenset[str] | None, *, prune: bool
) -> frozenset[str] | None:
    if planned is None or prune or not planned:
        return planned
    return planned | (before or frozenset())


def changed_parts(before: State, after: State) -> list[str]:
    """Return the parts to write: inventories, traits, aggregates."""
    return [
        part
        for part in ("inventories", "traits", "aggregates")
        if (value := getattr(after, part)) is not None
        and value != (getattr(before, part) or type(value)())
    ]


def is_moved(before: State, after: State) -> bool:
    """Tell whether name or parent differ."""
    return (before.name, before.parent) != (after.name, after.parent)


def _differences(before: State, after: State, names: Mapping[str, str]) -> Iterator[FieldChange]:
    if before.name != after.name:
        yield FieldChange("~", "name", before.name, after.name)
    if before.parent != after.parent:
        old, new = (
            None if uuid is None else names.get(uuid, uuid)
            for uuid in (before.parent, after.parent)
        )
        sign = "+" if old is None else "-" if new is None else "~"
        yield FieldChange(sign, "parent", old, new)
    yield from _inventory_differences(before.inventories or {}, after.inventories)
    for what, ours, theirs in (
        ("trait", before.traits, after.traits),
        ("aggregate", before.aggregates, after.aggregates),
    ):
        if theirs is not None:
            yield from (
                FieldChange("+", f"{what} {name}") for name in sorted(theirs - (ours or set()))
            )
            yield from (
                FieldChange("-", f"{what} {name}") for name in sorted((ours or set()) - theirs)
            )


def _inventory_differences(
    before: Inventories, after: Inventories | None
) -> Iterator[FieldChange]:
    if after is None:
        return
    for name in sorted(before.keys() | after.keys()):
        path = f"inventories.{name}"
        if name not in before:
            yield FieldChange("+", path, new=in_words(after[name]))
        elif name not in after:
            yield FieldChange("-", path, in_words(before[name]))
        else:
            for field, new in after[name].items():
                if before[name].get(field) != new:
                    old = str(before[name].get(field))
                    yield FieldChange("~", f"{path}.{field}", old, str(new))


def in_words(inventory: Mapping[str, Any]) -> str:
    """Return an inventory in words: its total, and every unusual value."""
    unusual = [
        f"{field} {inventory[field]}"
        for field, usual in DEFAULTS.items()
        if inventory.get(field, usual) != usual
    ]
    return ", ".join([f"total {inventory['total']}", *unusual])
