# SPDX-License-Identifier: Apache-2.0
"""YAML with the line of each member, read within bounds on depth, size and aliases.

Scalars are texts as they are written, since `007` may be a name; those that YAML reads as a number, a truth value or
a date, such as `on` and `12:30`, are plain texts.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

_MOST_CHARACTERS = 64 * 1024 * 1024
"""Longest document. 100,000 providers written out one by one, with ten lines each, have 40 MiB."""

_MOST_DEPTH = 100
"""Deepest nesting. A tree of providers takes two levels for each generation; clouds have five."""

_UNQUOTED_BRACES = re.compile(r"[\[{,][^\"']*\{\w*(:\d+)?\}")
"""Braces to fill in within a list or mapping in one line, where YAML reads them as a mapping."""


_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"


@dataclass(frozen=True, slots=True, order=True)
class DocumentFault:
    """A fault in a document.

    Attributes:
        line: Counted from 1; 0 for a fault of the whole document.
        text: The fault, and the correction where there is only one.
    """

    line: int
    text: str

    def at(self, source: str) -> str:
        """Return the fault with its place in a file, in the form of compilers."""
        return f"{source}:{self.line}: {self.text}" if self.line else f"{source}: {self.text}"


@dataclass(eq=False)
class Members(dict[str, Any]):
    """A mapping: values by key, the line where it begins, and the line of each key."""

    line: int
    lines: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class Items(list[Any]):
    """A list, the line where it begins, and the line of each item."""

    line: int
    lines: list[int] = field(default_factory=list)


class PlainText(str):
    """A text without quotes that YAML reads as something else."""

    __slots__ = ()


def read_document(text: str, problems: list[DocumentFault]) -> Any:
    """Read a document; append its faults to the problems. Return None if nothing can be used."""
    if len(text) > _MOST_CHARACTERS:
        problems.append(DocumentFault(1, f"it is longer than {_MOST_CHARACTERS} characters"))
        return None
    try:
        # The composer calls itself for each level; the parser does not.
        if not _is_flat_enough(text, problems):
            return None
        loader = _Loader(text)
        loader.problems = problems
        return loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        line = 0 if mark is None else mark.line
        wrong = "".join(text.splitlines()[line : line + 1])
        if "recursive" in words:
            words = "an alias stands for something that it is in itself"
        elif _UNQUOTED_BRACES.search(wrong):
            words += '; quote texts with braces: "host-{n}"'
        elif "\t" in wrong[: len(wrong) - len(wrong.lstrip())]:
            words += "; the line is indented with a tab, where YAML accepts only spaces"
        problems.append(DocumentFault(line + 1, f"this is not YAML: {words}"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        words = " ".join(str(error).split())
        problems.append(DocumentFault(1, f"this is not YAML: {words}"))
    return None


def _is_flat_enough(text: str, problems: list[DocumentFault]) -> bool:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MOST_DEPTH:
            line = 1 + (event.start_mark.line if event.start_mark else 0)
            problems.append(DocumentFault(line, f"this is nested more than {_MOST_DEPTH} deep"))
            return False
    return True


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Constructs Members, Items and scalars, each node once however many aliases it has."""

    problems: list[DocumentFault]

    def members(self, node: yaml.MappingNode) -> Members:
        """Construct a mapping; a key has to be a word, and to be there once."""
        written: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(DocumentFault(line, "a key has to be a word"))
            elif key.tag != _MERGE and key.value in written:
                first = written[key.value]
                text = f"{key.value!r} is given twice; line {first} has it too"
                self.problems.append(DocumentFault(line, text))
            else:
                written[key.value] = line
        self.flatten_mapping(node)
        members = Members(node.start_mark.line + 1)
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                members[key.value] = self.construct_object(value, deep=True)
                members.lines[key.value] = key.start_mark.line + 1
        return members

    def items(self, node: yaml.SequenceNode) -> Items:
        """Construct a list."""
        items = Items(node.start_mark.line + 1)
        for item in node.value:
            items.append(self.construct_object(item, deep=True))
            items.lines.append(item.start_mark.line + 1)
        return items

    def plain(self, node: yaml.ScalarNode) -> PlainText:
        """Construct a scalar that YAML does not read as a text."""
        return PlainText(node.value)

    def unknown(self, node: yaml.Node) -> None:
        """Report a tag, which would have Python construct something."""
        text = f"{node.tag!r} cannot be read: no tags are known"
        self.problems.append(DocumentFault(node.start_mark.line + 1, text))


for _kind in ("bool", "int", "float", "timestamp"):
    _Loader.add_constructor(_TAG + _kind, _Loader.plain)
_Loader.add_constructor(f"{_TAG}map", _Loader.members)
_Loader.add_constructor(f"{_TAG}seq", _Loader.items)
_Loader.add_constructor(None, _Loader.unknown)
