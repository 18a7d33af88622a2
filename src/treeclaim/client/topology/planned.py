# SPDX-License-Identifier: Apache-2.0
"""Providers as files describe them; in the names of entries, places such as `{n}` and `{parent}` are filled in."""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from treeclaim.client.topology.document import Items, Members
from treeclaim.model.names import NAMESPACE
from treeclaim.model.parts import INVENTORIES, PARTS, ProviderPart, Values

PLACES = re.compile(r"\{\{|\}\}|\{n(?::0([1-9])d?)?\}|\{parent\}|[{}]")
"""Places, doubled braces, and single ones, which are faults."""


def escape_braces(name: str) -> str:
    """Return a name in the form of an entry, in which braces are doubled."""
    return name.replace("{", "{{").replace("}", "}}")


def fill_places(name: str, number: int, parent: str) -> str:
    """Return a name with its places filled in."""

    def text(match: re.Match[str]) -> str:
        place = match[0]
        if place in ("{{", "}}"):
            return place[0]
        return parent if place == "{parent}" else str(number).zfill(int(match[1] or 0))

    return PLACES.sub(text, name)


def rename_consumed(values: Values, rename: Callable[[str], str]) -> Values:
    """Return the values of an entry with other names of the providers from which its inventories consume."""
    stock = INVENTORIES.or_empty(values)
    if not any(fields.get("consumes") for fields in stock.values()):
        return values
    renamed = {
        name: {**fields, "consumes": _rename_entries(fields["consumes"], rename)}
        if fields.get("consumes")
        else fields
        for name, fields in stock.items()
    }
    return {**values, INVENTORIES.name: renamed}


def _rename_entries(
    entries: Iterable[Mapping[str, Any]], rename: Callable[[str], str]
) -> list[dict[str, Any]]:
    renamed = [{**entry, "provider": rename(entry["provider"])} for entry in entries]
    return sorted(renamed, key=lambda entry: (entry["provider"], entry["resource_class"]))


@dataclass(frozen=True, slots=True)
class PlannedProvider:
    """A provider as a file describes it, or an entry that stands for many.

    Attributes:
        name: Unique; in an entry with its places.
        entry: What the file says, with the line of each member.
        uuid: Given, or made from the name; empty in an entry that gives none.
        parent: Name or uuid of the parent; None for a root.
        values: Values of the parts that the file does not omit.
        children: Entries of the providers below it; None if the file omits them.
        count: The number of providers for which the entry stands.
    """

    name: str
    entry: Members
    uuid: str = ""
    parent: str | None = None
    values: Values = field(default_factory=dict)
    children: "Sequence[PlannedProvider] | None" = None
    count: int = 1

    @property
    def line(self) -> int:
        """The line of the entry."""
        return self.entry.line

    @property
    def has_own_uuid(self) -> bool:
        """Whether the file gives the uuid."""
        return self.entry.get("uuid") is not None

    @property
    def parent_line(self) -> int:
        """The line that gives the parent; 0 where the file omits it."""
        return self.entry.lines.get("parent", self.line if self.parent else 0)

    def line_of(self, part: str, name: str) -> int:
        """Return the line of a name in a part; that of the entry for a class of a card."""
        listed = self.entry.get(part)
        if isinstance(listed, Members):
            return listed.lines.get(name, self.line)
        return listed.lines[listed.index(name)] if isinstance(listed, Items) else self.line

    @property
    def parts(self) -> list[ProviderPart[Any]]:
        """Return the parts that the file does not omit."""
        return [part for part in PARTS if part.name in self.values]

    def expand(self, parent: str | None = None) -> Iterator["PlannedProvider"]:
        """Yield the providers of the entry, each before its children.

        Args:
            parent: Name of the provider below which the entry is written; None for none.
        """
        for number in range(1, self.count + 1):
            fill_in = partial(fill_places, number=number, parent=parent or "")
            name = fill_in(self.name)
            yield replace(
                self,
                name=name,
                uuid=self.uuid or str(uuid.uuid5(NAMESPACE, name)),
                parent=parent or self.parent,
                values=rename_consumed(self.values, fill_in),
            )
            for child in self.children or ():
                yield from child.expand(name)
