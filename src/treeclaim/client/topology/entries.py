# SPDX-License-Identifier: Apache-2.0
"""Entries of a file: each is read once, and stands for as many providers as its count says."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treeclaim.client.errors import unknown_word
from treeclaim.client.topology.document import Items, Members, Problem, Scalar, Value
from treeclaim.client.topology.mig import CARDS, Card
from treeclaim.client.topology.planned import Parent, aggregate_uuid
from treeclaim.model.attributes import (
    LONGEST_TEXT,
    MOST_ATTRIBUTES,
    Attributes,
    is_attribute_name,
    is_attribute_value,
)
from treeclaim.model.inventory import MOST_CONSUMED_UNITS
from treeclaim.model.names import normalised_uuid
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, INVENTORIES, PARTS, TRAITS, Values

MEMBERS = ("name", "uuid", "count", "parent", *(part.name for part in PARTS), "mig", "children")
"""What an entry may have."""

_MOST = 2_147_483_647
_MOST_RATIO = 3.40282e38
_LOWEST = {"total": 1, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1}
_AMOUNTS = (*_LOWEST, "allocation_ratio")
"""Fields of an inventory and their bounds (contract page 30, section 1)."""

_UNREADABLE = {"total": _MOST}
"""Stands for a total that cannot be read, so that it causes no further errors."""

_CONSUMED = ("provider", "resource_class", "amount")
"""Members of a consumed inventory."""

_LONGEST_NAME = 255
_NAME = re.compile("[A-Z0-9_]+")
"""Form of the names of traits and resource classes (contract pages 50 and 60)."""

_PLAIN = re.compile("true|false|0|-?[1-9][0-9]*", re.IGNORECASE)
"""What stands for a truth value or an integer; YAML takes more for one, such as `on` and `12:30`."""

_PLACES = re.compile(r"\{\{|\}\}|\{n(?::0([1-9])d?)?\}|\{parent\}|[{}]")


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a file.

    Attributes:
        line: Where it is.
        name: With places for the number and the parent's name.
        uuid: None if it is made from the name.
        count: For how many providers it stands.
        parent: None where it says nothing about that.
        values: The values of the parts that it says something about.
        children: Entries of what is below; None where it says nothing about that.
    """

    line: int
    name: str
    uuid: str | None
    count: int
    parent: Parent | None
    values: Values
    children: "Sequence[Entry] | None"


def as_written(name: str) -> str:
    """Return a name as an entry must write it, so that filling it in gives that name."""
    return name.replace("{", "{{").replace("}", "}}")


def filled_in(name: str, number: int, parent: str) -> str:
    """Return a name with its places filled in."""

    def text(match: re.Match[str]) -> str:
        place = match[0]
        if place in ("{{", "}}"):
            return place[0]
        if place == "{parent}":
            return parent
        return str(number).zfill(int(match[1] or 0))

    return _PLACES.sub(text, name)


class EntryReader:
    """Reads entries, and collects everything that is wrong with them.

    Attributes:
        problems: What is wrong.
        traits, classes: The line of each name, where it comes first.
        aggregates: The words for aggregates that are named in words, by uuid.
        parts: Reads a part as a person writes it, by its name; None for what cannot be read.
    """

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.traits: dict[str, int] = {}
        self.classes: dict[str, int] = {}
        self.aggregates: dict[str, str] = {}
        self._known: dict[tuple[int, bool], Entry | None] = {}
        self.parts: Mapping[str, Callable[[Value], Any]] = {
            INVENTORIES.name: self._inventories,
            TRAITS.name: self._traits,
            AGGREGATES.name: self._aggregates,
            ATTRIBUTES.name: self._attributes,
        }

    def entries(self, value: Value, what: str, *, nested: bool) -> list[Entry]:
        """Read a list of entries."""
        entries = [self.entry(item, nested=nested) for item in self._items(value, what)]
        return [entry for entry in entries if entry is not None]

    def entry(self, value: Value, *, nested: bool) -> Entry | None:
        """Read an entry; an alias of one that was read already costs nothing."""
        key = id(value), nested
        if key not in self._known:
            self._known[key] = self._entry(value, nested=nested)
        return self._known[key]

    def _entry(self, value: Value, *, nested: bool) -> Entry | None:
        if not isinstance(value, Members):
            self._say(value.line, "a mapping is expected, with at least a name")
            return None
        self._require_known(value, MEMBERS)
        given = value.members
        count = self._count(given.get("count"))
        name = self._name(value)
        parent = self._parent(value, nested=nested)
        uuid = self._uuid(given.get("uuid"), count)
        values = {part: read(given[part]) for part, read in self.parts.items() if part in given}
        children = None
        if "children" in given:
            children = self.entries(given["children"], "children", nested=True)
        card = self._card(given["mig"]) if "mig" in given else None
        if card is not None:
            children = [*(children or ()), *self._positions(card, given["mig"].line)]
            slices = self._with_classes(card.slices(), given["mig"].line)
            values[INVENTORIES.name] = slices | (values.get(INVENTORIES.name) or {})
        if name is None:
            return None
        values = {part: read for part, read in values.items() if read is not None}
        return Entry(value.line, name, uuid, count, parent, values, children)

    def _card(self, value: Value) -> Card | None:
        name = value.text if isinstance(value, Scalar) else ""
        if name not in CARDS:
            self._say(value.line, unknown_word(name, tuple(CARDS)))
        return CARDS.get(name)

    def _positions(self, card: Card, line: int) -> Iterator[Entry]:
        """Yield an entry for each position of each MIG profile of a card."""
        for end, stock in card.positions():
            values = {INVENTORIES.name: self._with_classes(stock, line)}
            yield Entry(line, f"{{parent}}_{end}", None, 1, None, values, None)

    def _with_classes(self, stock: Mapping[str, Any], line: int) -> dict[str, Any]:
        """Return inventories as a new dict; note the line of their classes."""
        self.classes |= {known: line for known in stock if known not in self.classes}
        return dict(stock)

    def _name(self, entry: Members) -> str | None:
        name = entry.members.get("name")
        if name is None:
            self._say(entry.line, "a name is needed")
            return None
        if not isinstance(name, Scalar) or name.value is None or not name.text:
            self._say(name.line, "a name is a text of at least one character")
            return None
        for match in _PLACES.finditer(name.text):
            if match[0] in ("{", "}"):
                self._say(
                    name.line,
                    f"name {name.text!r}: only {{n}} (or {{n:03}}) and {{parent}} are filled "
                    "in; a brace itself is written twice",
                )
                return None
        return name.text

    def _count(self, value: Value | None) -> int:
        if value is None:
            return 1
        if not _is_whole(value) or not 1 <= value.value <= _MOST:  # type: ignore[union-attr]
            self._say(value.line, "count must be a whole number of at least 1")
            return 1
        return int(value.value)  # type: ignore[union-attr]

    def _uuid(self, value: Value | None, count: int) -> str | None:
        if value is None:
            return None
        if count > 1:
            self._say(value.line, "one uuid cannot be given to several providers")
        text = value.text if isinstance(value, Scalar) else "this"
        uuid = normalised_uuid(text)
        if uuid is None:
            self._say(value.line, f"{text!r} is not a uuid")
        return uuid

    def _parent(self, entry: Members, *, nested: bool) -> Parent | None:
        parent = entry.members.get("parent")
        if parent is None:
            return None
        if nested:
            self._say(parent.line, "what is written below a provider has that as its parent")
            return None
        if not isinstance(parent, Scalar) or parent.text == "" != parent.value:
            self._say(parent.line, "a parent is the name or uuid of a provider, or null for none")
            return None
        return Parent(None if parent.value is None else parent.text, parent.line)

    def _inventories(self, value: Value) -> dict[str, dict[str, Any]] | None:
        if not isinstance(value, Members):
            self._say_part(value, "inventories", "a mapping by resource class", "{}")
            return None
        inventories = {}
        for name, amounts in value.members.items():
            self._check_name(name, value.lines[name], "resource class", self.classes)
            inventories[name] = self._inventory(name, amounts)
        return inventories

    def _inventory(self, name: str, value: Value) -> dict[str, Any]:
        if isinstance(value, Scalar):
            if not _is_whole(value):
                self._say(value.line, f"{name}: a total or a mapping of fields is expected")
                return dict(_UNREADABLE)
            return self._fields(name, {"total": value})
        if not isinstance(value, Members) or not value.members:
            self._say(value.line, f"{name}: a total or a mapping of fields is expected")
            return dict(_UNREADABLE)
        self._require_known(value, (*_AMOUNTS, "consumes"), f"{name}: ")
        fields = self._fields(name, value.members)
        if "consumes" in value.members:
            fields["consumes"] = self._consumes(name, value.members["consumes"])
        if fields.get("reserved", 0) > fields.get("total", _MOST):
            line = value.members["reserved"].line
            self._say(line, f"{name}: reserved must not be greater than the total")
            del fields["reserved"]
        return fields

    def _consumes(self, name: str, value: Value) -> list[dict[str, Any]]:
        """Read what an inventory consumes (contract page 102, section 2)."""
        if not isinstance(value, Items):
            self._say(value.line, f"{name}: consumes must be a list; write [] for nothing")
            return []
        consumes: list[dict[str, Any]] = []
        for item in value.items:
            entry = self._consumed(name, item)
            if entry is not None:
                consumes.append(entry)
        return consumes

    def _consumed(self, name: str, item: Value) -> dict[str, Any] | None:
        members = item.members if isinstance(item, Members) else {}
        words = [members.get(word) for word in ("provider", "resource_class")]
        amount = members.get("amount")
        texts = [word.text for word in words if isinstance(word, Scalar) and word.text]
        is_amount = isinstance(amount, Scalar) and _is_whole(amount)
        if len(members) != len(_CONSUMED) or len(texts) < len(words) or not is_amount:
            text = f"{name}: what is consumed has a provider, a resource_class and an amount"
            self._say(item.line, text)
            return None
        number = amount.value if isinstance(amount, Scalar) else 0
        if not 1 <= number <= MOST_CONSUMED_UNITS:
            text = f"{name}: amount must be a whole number from 1 to {MOST_CONSUMED_UNITS}"
            self._say(item.line, text)
        return dict(zip(_CONSUMED, (*texts, number), strict=True))

    def _fields(self, name: str, given: Mapping[str, Value]) -> dict[str, Any]:
        fields: dict[str, Any] = dict(_UNREADABLE) if "total" in given else {}
        for field, value in given.items():
            if field == "allocation_ratio":
                if _is_ratio(value):
                    fields[field] = float(value.value)  # type: ignore[union-attr]
                else:
                    self._say(
                        value.line, f"{name}: {field} must be a number from 0 to {_MOST_RATIO}"
                    )
            elif field in _LOWEST:
                lowest = _LOWEST[field]
                if _is_whole(value) and lowest <= value.value <= _MOST:  # type: ignore[union-attr]
                    fields[field] = value.value  # type: ignore[union-attr]
                else:
                    self._say(
                        value.line,
                        f"{name}: {field} must be a whole number from {lowest} to {_MOST}",
                    )
        return fields

    def _traits(self, value: Value) -> frozenset[str] | None:
        if not isinstance(value, Items):
            self._say_part(value, "traits", "a list of names", "[]")
            return None
        names = self._texts(value, "a trait")
        for item in names:
            self._check_name(item.text, item.line, "trait", self.traits)
        return frozenset(item.text for item in names)

    def _aggregates(self, value: Value) -> frozenset[str] | None:
        if not isinstance(value, Items):
            self._say_part(value, "aggregates", "a list of names or uuids", "[]")
            return None
        words = {
            aggregate_uuid(item.text): item.text for item in self._texts(value, "an aggregate")
        }
        self.aggregates |= {
            uuid: word for uuid, word in words.items() if normalised_uuid(word) != uuid
        }
        return frozenset(words)

    def _attributes(self, value: Value) -> Attributes | None:
        if not isinstance(value, Members):
            self._say_part(value, "attributes", "a mapping of names to values", "{}")
            return None
        if len(value.members) > MOST_ATTRIBUTES:
            self._say(value.line, f"a provider has at most {MOST_ATTRIBUTES} attributes")
        attributes: dict[str, Any] = {}
        for name, given in value.members.items():
            if not is_attribute_name(name):
                self._say(
                    value.lines[name],
                    f"{name!r} is not an attribute: it takes small letters, digits and _, begins with "
                    "a letter, and is not a word of expressions, such as and",
                )
            elif _is_attribute(given):
                attributes[name] = given.value  # type: ignore[union-attr]
            else:
                self._say(
                    given.line,
                    f"{name}: true, false, an integer or a text of 1 to {LONGEST_TEXT} characters "
                    "is expected; in quotes, anything is a text",
                )
        return attributes

    def _texts(self, value: Items, what: str) -> list[Scalar]:
        first_by_text: dict[str, Scalar] = {}
        for item in value.items:
            if not isinstance(item, Scalar) or item.value is None or not item.text:
                self._say(item.line, f"{what} is a text")
            elif item.text in first_by_text:
                before = first_by_text[item.text].line
                self._say(item.line, f"{item.text!r} is given twice; line {before} has it too")
            else:
                first_by_text[item.text] = item
        return list(first_by_text.values())

    def _check_name(self, name: str, line: int, what: str, known: dict[str, int]) -> None:
        if not _NAME.fullmatch(name) or name == "CUSTOM_":
            self._say(
                line,
                f"{name!r} is not a {what}: it takes capital letters, digits and _, at least one",
            )
        elif len(name) > _LONGEST_NAME:
            self._say(line, f"{name[:40]!r}… is longer than {_LONGEST_NAME} characters")
        else:
            known.setdefault(name, line)

    def _items(self, value: Value, what: str) -> Sequence[Value]:
        if isinstance(value, Items):
            return value.items
        self._say_part(value, what, "a list of providers", "[]")
        return ()

    def _require_known(self, value: Members, known: Iterable[str], what: str = "") -> None:
        known = tuple(known)
        for name in value.lines:
            if name not in known:
                self._say(value.lines[name], f"{what}{unknown_word(name, known)}")

    def _say_part(self, value: Value, part: str, expected: str, empty: str) -> None:
        """Ask for an explicit empty list where nothing follows the colon."""
        is_nothing = isinstance(value, Scalar) and value.value is None
        advice = f"; write {empty} to remove them all" if is_nothing else ""
        self._say(value.line, f"{part} must be {expected}{advice}")

    def _say(self, line: int, text: str) -> None:
        self.problems.append(Problem(line, text))


def _is_whole(value: Value) -> bool:
    return isinstance(value, Scalar) and type(value.value) is int


def _is_attribute(value: Value) -> bool:
    if not isinstance(value, Scalar) or not is_attribute_value(value.value):
        return False
    return isinstance(value.value, str) or _PLAIN.fullmatch(value.text) is not None


def _is_ratio(value: Value) -> bool:
    if not isinstance(value, Scalar) or type(value.value) not in (int, float):
        return False
    return math.isfinite(value.value) and 0 <= value.value <= _MOST_RATIO
