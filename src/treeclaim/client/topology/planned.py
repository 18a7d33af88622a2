# SPDX-License-Identifier: Apache-2.0
"""Providers of a topology file, and entries with placeholders such as `{n}` and `{parent}` in names."""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from treeclaim.client.topology.document import Items, Members
from treeclaim.model.names import NAMESPACE
from treeclaim.model.parts import INVENTORIES, PARTS, PartValues, ProviderPart

PLACEHOLDERS = re.compile(r"\{\{|\}\}|\{n(?::0([1-9])d?)?\}|\{parent\}|[{}]")
"""Placeholders, doubled braces, and single braces, which are faults."""


def escape_braces(name: str) -> str:
    """Return a name in the form of an entry, with doubled braces."""
    return name.replace("{", "{{").replace("}", "}}")


def fill_placeholders(name: str, number: int, parent: str) -> str:
    """Return a name with its placeholders replaced."""

    def replacement(match: re.Match[str]) -> str:
        placeholder = match[0]
        if placeholder in ("{{", "}}"):
            return placeholder[0]
        return parent if placeholder == "{parent}" else str(number).zfill(int(match[1] or 0))

    return PLACEHOLDERS.sub(replacement, name)


def rename_consumed(values: PartValues, rename: Callable[[str], str]) -> PartValues:
    """Return the values of an entry with renamed providers in `consumes`."""
    stock = INVENTORIES.or_empty(values)
    if not any(fields.get("consumes") for fields in stock.values()):
        return values
    renamed_inventories = {
        name: {**fields, "consumes": _rename_entries(fields["consumes"], rename)}
        if fields.get("consumes")
        else fields
        for name, fields in stock.items()
    }
    return {**values, INVENTORIES.name: renamed_inventories}


def _rename_entries(
    entries: Iterable[Mapping[str, Any]], rename: Callable[[str], str]
) -> list[dict[str, Any]]:
    renamed_entries = [{**entry, "provider": rename(entry["provider"])} for entry in entries]
    return sorted(renamed_entries, key=lambda entry: (entry["provider"], entry["resource_class"]))


@dataclass(frozen=True, slots=True)
class PlannedProvider:
    """A provider of a file, or an entry for many providers.

    Attributes:
        name: Unique name; in an entry, with placeholders.
        uuid: UUID of the file, or made from the name; empty in an entry without a uuid.
        parent: Name or uuid of the parent; None for a root.
        children: Entries of the children; None if the file omits them.
        count: Number of providers of the entry.
    """

    name: str
    entry: Members
    uuid: str = ""
    parent: str | None = None
    values: PartValues = field(default_factory=dict)
    children: "Sequence[PlannedProvider] | None" = None
    count: int = 1

    @property
    def line(self) -> int:
        """The line of the entry."""
        return self.entry.line

    @property
    def has_explicit_uuid(self) -> bool:
        """Whether the file has the uuid."""
        return self.entry.get("uuid") is not None

    @property
    def parent_line(self) -> int:
        """The line of the parent; 0 if the file omits it."""
        return self.entry.lines.get("parent", self.line if self.parent else 0)

    def find_line(self, part: str, name: str) -> int:
        """Return the line of a name in a part; the line of the entry for classes of a card."""
        part_entries = self.entry.get(part)
        if isinstance(part_entries, Members):
            return part_entries.lines.get(name, self.line)
        return (
            part_entries.lines[part_entries.index(name)]
            if isinstance(part_entries, Items)
            else self.line
        )

    @property
    def parts(self) -> list[ProviderPart[Any]]:
        """Return the parts in the file."""
        return [part for part in PARTS if part.name in self.values]

    def expand(self, parent: str | None = None) -> Iterator["PlannedProvider"]:
        """Yield the providers of the entry, which is nested in `parent`, each before its children."""
        for number in range(1, self.count + 1):
            fill = partial(fill_placeholders, number=number, parent=parent or "")
            name = fill(self.name)
            yield replace(
                self,
                name=name,
                uuid=self.uuid or str(uuid.uuid5(NAMESPACE, name)),
                parent=parent or self.parent,
                values=rename_consumed(self.values, fill),
            )
            for child in self.children or ():
                yield from child.expand(name)
