# SPDX-License-Identifier: Apache-2.0
"""Reads YAML with the line of each member, bounded in depth, size and aliases.

Scalars stay texts, since `007` may be a name. `PlainText` marks unquoted texts that YAML reads as a number, a boolean
or a date, such as `on` and `12:30`.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

_MOST_CHARACTERS = 64 * 1024 * 1024
"""Longest document; 100,000 providers of ten lines each have 40 MiB."""

_MOST_DEPTH = 100
"""Deepest nesting. A generation of providers takes two levels; clouds have five generations."""

_UNQUOTED_BRACES = re.compile(r"[\[{,][^\"']*\{\w*(:\d+)?\}")
"""Unquoted placeholders within an inline list or mapping, where YAML reads them as a mapping."""

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"


@dataclass(frozen=True, slots=True, order=True)
class DocumentFault:
    """A fault in a line, counted from 1, or in the whole document: line 0."""

    line: int
    text: str

    def format(self, source: str) -> str:
        """Return the fault as `source:line: text`."""
        return f"{source}:{self.line}: {self.text}" if self.line else f"{source}: {self.text}"


@dataclass(eq=False)
class Members(dict[str, Any]):
    """A mapping with the lines of its begin and of each key."""

    line: int
    lines: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class Items(list[Any]):
    """A list with the lines of its begin and of each item."""

    line: int
    lines: list[int] = field(default_factory=list)


class PlainText(str):
    """An unquoted text that YAML reads as another type."""

    __slots__ = ()


def read_document(text: str, problems: list[DocumentFault]) -> Any:
    """Read a document and append its faults to the problems; return None if it is unusable."""
    if len(text) > _MOST_CHARACTERS:
        problems.append(DocumentFault(1, f"it is longer than {_MOST_CHARACTERS} characters"))
        return None
    try:
        # The composer recurses for each level; the parser does not.
        if not _check_depth(text, problems):
            return None
        loader = _Loader(text)
        loader.problems = problems
        return loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        line = 0 if mark is None else mark.line
        wrong_line = "".join(text.splitlines()[line : line + 1])
        if "recursive" in words:
            words = "an alias stands for something that it is in itself"
        elif _UNQUOTED_BRACES.search(wrong_line):
            words += '; quote texts with braces: "host-{n}"'
        elif "\t" in wrong_line[: len(wrong_line) - len(wrong_line.lstrip())]:
            words += "; the line is indented with a tab, where YAML accepts only spaces"
        problems.append(DocumentFault(line + 1, f"this is not YAML: {words}"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        words = " ".join(str(error).split())
        problems.append(DocumentFault(1, f"this is not YAML: {words}"))
    return None


def _check_depth(text: str, problems: list[DocumentFault]) -> bool:
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
    """Constructs each node once, whatever the number of its aliases."""

    problems: list[DocumentFault]

    def construct_members(self, node: yaml.MappingNode) -> Members:
        """Construct a mapping; report keys that are no words, and repeated keys."""
        key_lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(DocumentFault(line, "a key has to be a word"))
            elif key.tag != _MERGE and key.value in key_lines:
                first_line = key_lines[key.value]
                text = f"{key.value!r} is given twice; line {first_line} has it too"
                self.problems.append(DocumentFault(line, text))
            else:
                key_lines[key.value] = line
        self.flatten_mapping(node)
        members = Members(node.start_mark.line + 1)
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                members[key.value] = self.construct_object(value, deep=True)
                members.lines[key.value] = key.start_mark.line + 1
        return members

    def construct_items(self, node: yaml.SequenceNode) -> Items:
        items = Items(node.start_mark.line + 1)
        for item in node.value:
            items.append(self.construct_object(item, deep=True))
            items.lines.append(item.start_mark.line + 1)
        return items

    def construct_plain_text(self, node: yaml.ScalarNode) -> PlainText:
        return PlainText(node.value)

    def report_tag(self, node: yaml.Node) -> None:
        """Report a tag, which could make PyYAML construct any Python object."""
        text = f"{node.tag!r} cannot be read: no tags are known"
        self.problems.append(DocumentFault(node.start_mark.line + 1, text))


for _kind in ("bool", "int", "float", "timestamp"):
    _Loader.add_constructor(_TAG + _kind, _Loader.construct_plain_text)
_Loader.add_constructor(f"{_TAG}map", _Loader.construct_members)
_Loader.add_constructor(f"{_TAG}seq", _Loader.construct_items)
_Loader.add_constructor(None, _Loader.report_tag)
