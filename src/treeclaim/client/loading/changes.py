# SPDX-License-Identifier: Apache-2.0
"""The change of a provider from its present to the wanted state, field by field."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from treeclaim.client.states import State
from treeclaim.client.topology import PlannedProvider
from treeclaim.model.parts import PARTS, FieldChange


class Action(Enum):
    """An action on a provider, with its sign in a difference."""

    CREATE = "+"
    CHANGE = "~"
    DELETE = "-"
    KEEP = " "


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A planned change of a provider.

    Attributes:
        action: What kind of thing.
        before: As it is; None if it is not there.
        after: As it will be; None if it is deleted.
        planned: What the file says; None for a deletion.
        level: Generations above it, in the end.
        refusal: Why the service will refuse the change; None if nothing is known against it.
    """

    action: Action
    before: State | None
    after: State | None
    planned: PlannedProvider | None
    level: int = 0
    refusal: str | None = None

    @property
    def place(self) -> str:
        """Name of the provider, with its line in the file if it is there."""
        return self.name if self.planned is None else f"{self.name} (line {self.planned.line})"

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
        before = self.before or replace(self.after.without_parts, parent=None)
        return list(_differences(before, self.after, names))


def wanted(before: State, planned: PlannedProvider, parent: str | None, *, prune: bool) -> State:
    """Return the wanted state of a provider.

    What the file says nothing about stays; what is given as empty is emptied; what a part of the
    file does not list is removed only when pruning.

    Args:
        before: As it is; one that is new has no parts.
        planned: What the file says.
        parent: Uuid of its parent in the end.
        prune: Whether to remove what is not listed.
    """
    values = {
        part.name: part.merged(part.or_empty(before.values), given, prune=prune)
        for part in PARTS
        if (given := part.value_in(planned.values)) is not None
    }
    return replace(before, name=planned.name, parent=parent, values=values)


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
    for part in PARTS:
        value = part.value_in(after.values)
        if value is not None:
            yield from part.differences(part.or_empty(before.values), value)
