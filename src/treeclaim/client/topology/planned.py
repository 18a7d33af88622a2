# SPDX-License-Identifier: Apache-2.0
"""Providers as a file describes them; an omitted part is None and stays as it is.

Walking up to the root from each provider would take a day for a chain of 200,000, so circles, depths and
descendants are found in time that is linear in the number of providers.
"""

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from treeclaim.client.topology.document import Problem
from treeclaim.model.names import normalised_uuid
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
        values: The values of the parts that the file says something about, empty for none at all.
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
        readable: The part that could be read, in which others may find more that is wrong.
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
    # What a shell gives need not be UTF-8; nothing has such a name.
    text = name.encode(errors="replace").decode()
    return normalised_uuid(name) or str(uuid.uuid5(NAMESPACE, f"aggregate {text}"))


def circle(parent: Parent, name: str) -> Problem:
    """Return the problem of a provider whose parent is below it."""
    return Problem(parent.line, f"{name!r} would be below itself")


def circles(parents: Mapping[str, str | None]) -> set[str]:
    """Return those that are their own ancestors.

    Args:
        parents: The parent of each; a parent need not have an entry of its own.
    """
    circular: set[str] = set()
    for path, last in _paths(parents):
        if last in path:
            circular.update(path[path.index(last) :])
    return circular


def depths(parents: Mapping[str, str | None]) -> dict[str, int]:
    """Return how many are above each; 0 for those in or below a circle."""
    known: dict[str, int | None] = {}
    for path, last in _paths(parents):
        if last in path:
            known.update(dict.fromkeys(path, None))
            continue
        above = -1 if last is None else known[last]
        for name in reversed(path):
            above = None if above is None else above + 1
            known[name] = above
    return {name: depth or 0 for name, depth in known.items()}


def descendants(parents: Mapping[str, str | None], those: Collection[str]) -> set[str]:
    """Return all that are somewhere below one of those."""
    below: dict[str, bool] = {}
    for path, last in _paths(parents):
        circle = path[path.index(last) :] if last in path else ()
        is_below = any(name in those for name in circle) or below.get(last or "", False)
        for name in reversed(path):
            above = parents.get(name)
            is_below = is_below or above in those
            below[name] = is_below
    return {name for name, is_below in below.items() if is_below}


def _paths(parents: Mapping[str, str | None]) -> Iterator[tuple[list[str], str | None]]:
    """Divide all into paths upwards, none twice.

    Yields:
        A path, and what is above its end: an entry of an earlier path, of this one (a circle), or
        nothing.
    """
    seen: set[str] = set()
    for start in parents:
        path: list[str] = []
        name: str | None = start
        while name is not None and name not in seen:
            seen.add(name)
            path.append(name)
            name = parents.get(name)
        if path:
            yield path, name
