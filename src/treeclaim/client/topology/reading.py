# SPDX-License-Identifier: Apache-2.0
"""Reads a whole file: returns a topology, or reports everything that is wrong at once."""

import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from treeclaim.client.topology.document import Members, Problem, read_document
from treeclaim.client.topology.entries import Entry, EntryReader, filled_in
from treeclaim.client.topology.planned import (
    NAMESPACE,
    Parent,
    PlannedProvider,
    Topology,
    TopologyError,
    circle,
    circles,
)
from treeclaim.model.parts import INVENTORIES, Values

_MOST_PROVIDERS = 200_000
"""Most providers of a file. The largest clouds that are known have some 100,000; a count with too
many digits, or aliases of aliases, must not fill the memory."""

_LONGEST_NAME = 200
"""Characters of a provider's name (contract page 20)."""

STANDARD_INPUT = "-"


def read_topology(path: Path) -> Topology:
    """Read a file; `-` is standard input.

    Raises:
        TopologyError: if it cannot be read or understood.
    """
    is_input = str(path) == STANDARD_INPUT
    source = "standard input" if is_input else str(path)
    try:
        content = sys.stdin.buffer.read() if is_input else path.read_bytes()
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise TopologyError(source, [Problem(line, "this is not UTF-8")]) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TopologyError(source, [Problem(0, f"it cannot be read: {reason}")]) from error
    return parse_topology(text, source)


def parse_topology(text: str, source: str) -> Topology:
    """Read the text of a file.

    Args:
        text: In YAML.
        source: What messages call it.

    Raises:
        TopologyError: with all that is wrong.
    """
    problems: list[Problem] = []
    document = read_document(text, problems)
    reader = EntryReader(problems)
    entries: Sequence[Entry] = ()
    if isinstance(document, Members) and "providers" in document.members:
        problems.extend(
            Problem(line, f"unknown {name!r}; only 'providers' is known")
            for name, line in document.lines.items()
            if name != "providers"
        )
        entries = reader.entries(document.members["providers"], "providers", nested=False)
    elif not problems:
        line = 1 if document is None else document.line
        problems.append(Problem(line, "a mapping with a list 'providers' is expected"))
    planned = _all_expanded(entries, problems)
    _check_unique(planned, problems)
    _check_circles(planned, problems)
    topology = Topology(source, planned, reader.traits, reader.classes, reader.aggregates)
    if problems:
        raise TopologyError(source, problems, topology if planned else None)
    return topology


def _all_expanded(entries: Sequence[Entry], problems: list[Problem]) -> list[PlannedProvider]:
    planned: list[PlannedProvider] = []
    for entry in entries:
        for provider in _expanded(entry, None):
            planned.append(provider)
            if len(planned) > _MOST_PROVIDERS:
                problems.append(
                    Problem(entry.line, f"these are more than {_MOST_PROVIDERS} providers")
                )
                return []
    return planned


def _expanded(entry: Entry, parent: str | None) -> Iterator[PlannedProvider]:
    """Yield the providers of an entry: as many as its count says, each with its children."""
    for number in range(1, entry.count + 1):
        name = filled_in(entry.name, number, parent or "")
        yield PlannedProvider(
            name=name,
            uuid=entry.uuid or str(uuid.uuid5(NAMESPACE, name)),
            has_own_uuid=entry.uuid is not None,
            parent=entry.parent if parent is None else Parent(parent, entry.line),
            values=_filled_values(entry.values, number, parent or ""),
            lists_children=entry.children is not None,
            line=entry.line,
        )
        for child in entry.children or ():
            yield from _expanded(child, name)


def _filled_values(values: Values, number: int, parent: str) -> Values:
    """Fill in the names of providers from which inventories consume."""
    stock = values.get(INVENTORIES.name, {})
    if not any(fields.get("consumes") for fields in stock.values()):
        return values
    filled = {
        name: fields
        if "consumes" not in fields
        else {
            **fields,
            "consumes": [
                {**entry, "provider": filled_in(entry["provider"], number, parent)}
                for entry in fields["consumes"]
            ],
        }
        for name, fields in stock.items()
    }
    return {**values, INVENTORIES.name: filled}


def _check_unique(planned: Sequence[PlannedProvider], problems: list[Problem]) -> None:
    names: dict[str, int] = {}
    uuids: dict[str, int] = {}
    for provider in planned:
        if not 0 < len(provider.name) <= _LONGEST_NAME:
            text = f"name {provider.name[:40]!r}… has more than {_LONGEST_NAME} characters"
            problems.append(Problem(provider.line, text))
        for what, text, known in (("name", provider.name, names), ("uuid", provider.uuid, uuids)):
            first = known.setdefault(text, 0)
            if not first:
                known[text] = provider.line
            elif what == "name" or provider.has_own_uuid:
                where = f"that of line {first} too" if first != provider.line else "repeated"
                problems.append(
                    Problem(
                        provider.line, f"{what} {text!r} is {where}: it can stand for one only"
                    )
                )


def _check_circles(planned: Sequence[PlannedProvider], problems: list[Problem]) -> None:
    """Find providers that would be below themselves according to the file alone."""
    first: dict[str, PlannedProvider] = {}
    for provider in planned:
        first.setdefault(provider.name, provider)
    by_uuid = {provider.uuid: provider for provider in planned}

    def above(provider: PlannedProvider) -> PlannedProvider | None:
        name = None if provider.parent is None else provider.parent.name
        return None if name is None else first.get(name) or by_uuid.get(name.lower())

    parents = {
        provider.name: None if (parent := above(provider)) is None else parent.name
        for provider in first.values()
    }
    in_circle = circles(parents)
    problems.extend(
        circle(provider.parent, provider.name)
        for provider in first.values()
        if provider.parent is not None and provider.name in in_circle
    )
