# SPDX-License-Identifier: Apache-2.0
"""Providers as a file describes them; an omitted part is None and stays as it is."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from treeclaim.client.topology.document import Problem
from treeclaim.model.parts import PARTS, ProviderPart, Values

NAMESPACE = uuid.UUID("6f1d6c1e-3c5e-5c55-9a3b-6e8f1f0a7c11")
"""Names in a file become uuids in this namespace, the same ones each time."""


@dataclass(frozen=True, slots=True)
class Parent:
    """The parent of a provider in a file.

    Attributes:
        name: Name or uuid of the parent; None for a root.
        line: Where the file says so.
    """

    name: str | None
    line: int


@dataclass(frozen=True, slots=True)
class PlannedProvider:
    """A provider as a file describes it.

    Attributes:
        name: Unique.
        uuid: Given, or made from the name.
        has_own_uuid: Whether the file gives the uuid.
        parent: The parent; None where the file says nothing about it.
        values: Of the parts that the file says something about, empty for none at all.
        lists_children: Whether the file lists what is below it.
        line: Where it is in the file.
    """

    name: str
    uuid: str
    has_own_uuid: bool
    parent: Parent | None
    values: Values
    lists_children: bool
    line: int

    @property
    def parts(self) -> list[ProviderPart[Any]]:
        """Return the parts that the file says something about."""
        return [part for part in PARTS if part.name in self.values]


@dataclass(frozen=True, slots=True)
class Topology:
    """The contents of a file.

    Attributes:
        source: Name of the file.
        providers: Parents before the children that are written below them.
        traits, classes: The line of each name, where it comes first.
        aggregates: The words for aggregates that are named in words, by uuid.
    """

    source: str
    providers: Sequence[PlannedProvider]
    traits: Mapping[str, int]
    classes: Mapping[str, int]
    aggregates: Mapping[str, str] = field(default_factory=dict)


class TopologyError(Exception):
    """A file cannot be used.

    Attributes:
        problems: All that is wrong with it, by line.
        lines: The same in words, with the place of each.
        readable: What of it could be read, where somebody else can find more that is wrong.
    """

    def __init__(
        self, source: str, problems: Iterable[Problem], readable: Topology | None = None
    ) -> None:
        self.problems = tuple(sorted(set(problems)))
        self.readable = readable
        self.lines = tuple(problem.at(source) for problem in self.problems)
        super().__init__("\n".join(self.lines))


def aggregate_uuid(name: str) -> str:
    """Return the uuid of an aggregate, which a file may name in words."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        # What a shell gives need not be UTF-8; nothing has such a name.
        text = name.encode(errors="replace").decode()
        return str(uuid.uuid5(NAMESPACE, f"aggregate {text}"))


def circle(parent: Parent, name: str) -> Problem:
    """Return the problem of a provider whose parent is below it."""
    return Problem(parent.line, f"{name!r} would be below itself")
