# SPDX-License-Identifier: Apache-2.0
"""Reads a topology file: its providers, and all its faults."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from treeclaim.client.topology.document import DocumentFault, Items, Members, read_document
from treeclaim.client.topology.planned import PlannedProvider

MOST_PROVIDERS = 200_000
"""Most providers of a file; the largest known clouds have some 100,000. The limit keeps a wrong count, or aliases of
aliases, from filling the memory."""

_LONGEST_NAME = 200
"""Most characters of a provider's name (contract page 20)."""

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Topology:
    """The contents of a file: its faults, and its providers, each before its nested children.

    A topology with faults is never written.
    """

    source: str
    problems: Sequence[DocumentFault] = ()
    providers: Sequence[PlannedProvider] = ()


class TopologyError(Exception):
    """A file is invalid; the faults are sorted by line."""

    def __init__(self, source: str, problems: Iterable[DocumentFault]) -> None:
        self.problems = tuple(sorted(set(problems)))
        self.lines = tuple(problem.format(source) for problem in self.problems)
        super().__init__("\n".join(self.lines))


def read_topology(path: Path) -> Topology:
    """Read a file; `-` is standard input."""
    is_input = str(path) == STANDARD_INPUT
    source = "standard input" if is_input else str(path)
    try:
        content = sys.stdin.buffer.read() if is_input else path.read_bytes()
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return Topology(source, [DocumentFault(line, "this is not UTF-8")])
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return Topology(source, [DocumentFault(0, f"it cannot be read: {reason}")])
    return parse_topology(text, source)


def parse_topology(text: str, source: str) -> Topology:
    """Parse the text of a file; `source` is its name in messages."""
    # pydantic is slow to import; a help does not need it.
    from treeclaim.client.topology.entries import EntryReader  # noqa: PLC0415

    problems: list[DocumentFault] = []
    document = read_document(text, problems)
    entries: Sequence[PlannedProvider] = ()
    if isinstance(document, Members) and "providers" in document:
        problems.extend(
            DocumentFault(line, f"unknown {name!r}; only 'providers' is known")
            for name, line in document.lines.items()
            if name != "providers"
        )
        if isinstance(document["providers"], Items):
            entries = EntryReader(problems).read_entries(document["providers"], is_nested=False)
        else:
            text = "providers must be a list of providers"
            problems.append(DocumentFault(document.lines["providers"], text))
    elif not problems:
        problems.append(DocumentFault(1, "a mapping with a list 'providers' is expected"))
    providers = _expand_all(entries, problems)
    _check_unique(providers, problems)
    return Topology(source, problems, providers)


def _expand_all(
    entries: Sequence[PlannedProvider], problems: list[DocumentFault]
) -> list[PlannedProvider]:
    providers: list[PlannedProvider] = []
    for entry in entries:
        for provider in entry.expand():
            providers.append(provider)
            if len(providers) > MOST_PROVIDERS:
                text = f"these are more than {MOST_PROVIDERS} providers"
                problems.append(DocumentFault(entry.line, text))
                return []
    return providers


def _check_unique(providers: Sequence[PlannedProvider], problems: list[DocumentFault]) -> None:
    names: dict[str, int] = {}
    uuids: dict[str, int] = {}
    for provider in providers:
        if not 0 < len(provider.name) <= _LONGEST_NAME:
            text = f"name {provider.name[:40]!r}… has more than {_LONGEST_NAME} characters"
            problems.append(DocumentFault(provider.line, text))
        for kind, text, lines in (("name", provider.name, names), ("uuid", provider.uuid, uuids)):
            first_line = lines.setdefault(text, 0)
            if not first_line:
                lines[text] = provider.line
            elif kind == "name" or provider.has_explicit_uuid:
                where = (
                    f"that of line {first_line} too" if first_line != provider.line else "repeated"
                )
                problem = f"{kind} {text!r} is {where}: it can stand for one only"
                problems.append(DocumentFault(provider.line, problem))
