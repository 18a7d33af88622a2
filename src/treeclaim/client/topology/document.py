# SPDX-License-Identifier: Apache-2.0
"""YAML with the line of each value, read within bounds on depth, size and aliases."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

_MOST_CHARACTERS = 64 * 1024 * 1024
"""Longest document. 100,000 providers written out one by one, with ten lines each, have 40 MiB."""

_MOST_DEPTH = 100
"""Deepest nesting. A tree of providers takes two levels for each generation; clouds have five."""

_MERGE = "tag:yaml.org,2002:merge"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNQUOTED_BRACES = re.compile(r"[\[{,][^\"']*\{\w*(:\d+)?\}")
"""Braces to fill in within a list or mapping in one line, where YAML reads them as a mapping."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A fault in a document.

    Attributes:
        line: Counted from 1; 0 where it is about the whole.
        text: What is wrong, and what would be right.
    """

    line: int
    text: str

    def at(self, source: str) -> str:
        """Return the fault with its place in a file, as compilers write it."""
        return f"{source}:{self.line}: {self.text}" if self.line else f"{source}: {self.text}"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value.

    Attributes:
        line: Where it is.
        text: As it is written.
        value: What YAML takes it for: text, a number, true, null.
    """

    line: int
    text: str
    value: Any


@dataclass(frozen=True, slots=True)
class Members:
    """A mapping.

    Attributes:
        line: Where it begins.
        members: Values by key.
        lines: The line of each key.
    """

    line: int
    members: Mapping[str, "Value"]
    lines: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Items:
    """A list.

    Attributes:
        line: Where it begins.
        items: Its values.
    """

    line: int
    items: Sequence["Value"]


Value = Scalar | Members | Items


def read_document(text: str, problems: list[Problem]) -> Value | None:
    """Read a document; what is wrong is added to the problems. None if there is nothing to use."""
    if len(text) > _MOST_CHARACTERS:
        problems.append(Problem(1, f"it is longer than {_MOST_CHARACTERS} characters"))
        return None
    try:
        # The composer calls itself for each level; the parser does not.
        if not _is_flat_enough(text, problems):
            return None
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        line = 0 if mark is None else mark.line
        if _UNQUOTED_BRACES.search("".join(text.splitlines()[line : line + 1])):
            words += '; quote texts with braces: "host-{n}"'
        problems.append(Problem(line + 1, f"this is not YAML: {words}"))
        return None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        words = " ".join(str(error).split())
        problems.append(Problem(1, f"this is not YAML: {words}"))
        return None
    return None if node is None else _Converter(problems).value(node)


def _is_flat_enough(text: str, problems: list[Problem]) -> bool:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MOST_DEPTH:
            mark = event.start_mark
            line = 1 if mark is None else mark.line + 1
            problems.append(Problem(line, f"this is nested more than {_MOST_DEPTH} deep"))
            return False
    return True


class _Converter:
    """Turns YAML's nodes into values, each node once however many aliases it has."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._known: dict[int, Value | None] = {}
        self._open: set[int] = set()
        self._scalars = yaml.constructor.SafeConstructor()

    def value(self, node: yaml.Node) -> Value | None:
        """Return the value of a node; None where it cannot be read."""
        key = id(node)
        if key in self._open:
            self._say(node, "an alias stands for something that it is in itself")
            return None
        if key not in self._known:
            self._open.add(key)
            self._known[key] = self._converted(node)
            self._open.discard(key)
        return self._known[key]

    def _converted(self, node: yaml.Node) -> Value | None:
        line = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, line)
        if isinstance(node, yaml.SequenceNode):
            items = [self.value(item) for item in node.value]
            return Items(line, [item for item in items if item is not None])
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            words = getattr(error, "problem", None) or str(error)
            self._say(node, f"{node.value[:40]!r} cannot be read: {words}")
            return None
        return Scalar(line, str(node.value), value)

    def _mapping(self, node: yaml.MappingNode, line: int) -> Members:
        members: dict[str, Value] = {}
        lines: dict[str, int] = {}
        merged: dict[str, Value] = {}
        for key, item in node.value:
            value = self.value(item)
            if not isinstance(key, yaml.ScalarNode):
                self._say(key, "a key has to be a word")
            elif key.tag == _MERGE:
                merged |= self._merged(key, value)
            elif key.value in lines:
                self._say(key, f"{key.value!r} is given twice; line {lines[key.value]} has it too")
            else:
                lines[key.value] = key.start_mark.line + 1
                if value is not None:
                    members[key.value] = value
        for name, value in merged.items():
            if name not in lines:
                members[name] = value
                lines[name] = value.line
        return Members(line, members, lines)

    def _merged(self, key: yaml.Node, value: Value | None) -> dict[str, Value]:
        """Return the members merged by `<<`; the first mapping that has a key wins."""
        sources = value.items if isinstance(value, Items) else [value]
        merged: dict[str, Value] = {}
        for source in sources:
            if isinstance(source, Members):
                merged = {**source.members, **merged}
            elif source is not None:
                self._say(key, "<< takes a mapping, or a list of mappings")
        return merged

    def _say(self, node: yaml.Node, text: str) -> None:
        self._problems.append(Problem(node.start_mark.line + 1, text))
