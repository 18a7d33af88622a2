# SPDX-License-Identifier: Apache-2.0
"""The parts of a provider, each declared once.

What follows from a declaration: which rules hold and what may be included in bulk, how a value is
read and written as JSON, what a topology file makes of it, how two values differ, what is copied,
shown and watched. What a layer alone knows of a part is in the layer's own list:

- `store/schema/tables.py`: the table whose rows belong to a provider;
- `store/reading/providers/parts.py`: how it is loaded, of some providers and of all;
- `store/operations/providers/entries.py`: how it is written;
- `forest/listing/texts.py`: its JSON text, where the names of what it has are looked up;
- `api/resources/extension/parts.py`: the schemas of a value;
- `client/topology/entries.py`: how a person writes it down.

`tests/model/test_parts.py` fails where a list lacks a part.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import IntFlag
from typing import Any, Generic, TypeVar

from treeclaim.model.attributes import Attributes, AttributeValue, same_attributes
from treeclaim.model.extension.conditions import EFFECTS, Condition, shown_by_key
from treeclaim.model.extension.holds import utc_of
from treeclaim.model.inventory import AMOUNTS, Inventory
from treeclaim.model.microversions import ExtensionFeature, Feature

Value = TypeVar("Value")

Values = Mapping[str, Any]
"""Values of parts by the parts' names; one that is not known, or not spoken of, is left out."""


class Part(IntFlag):
    """Parts of a provider that change separately; the numbers are stored in the feed."""

    PROVIDER = 1
    """Name, parent, root."""
    INVENTORIES = 2
    TRAITS = 4
    AGGREGATES = 8
    ALLOCATIONS = 16
    """And so its usages."""
    ATTRIBUTES = 32
    CONDITIONS = 64

    @property
    def word(self) -> str:
        """Return the name as clients have it."""
        return str(self.name).lower()


EVERYTHING = Part(sum(Part))
"""All of them: of a new provider, and where it is not known what changed."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A difference in one field.

    Attributes:
        sign: `+` for what comes, `-` for what goes, `~` for what has another value.
        field: Such as `inventories.VCPU.total`.
        old, new: In words; None where there is none.
    """

    sign: str
    field: str
    old: str | None = None
    new: str | None = None

    def __str__(self) -> str:
        """Write it in a line."""
        if self.old is not None and self.new is not None:
            return f"{self.sign} {self.field}: {self.old} → {self.new}"
        value = self.new if self.old is None else self.old
        return f"{self.sign} {self.field}" + ("" if value is None else f": {value}")


@dataclass(frozen=True, slots=True)
class ProviderPart(ABC, Generic[Value]):
    """A part of a provider, which clients replace as a whole.

    Attributes:
        name: The member of JSON documents and topology files, what `include` calls it, and the last
            word of its own URL.
        single: The word for one of what it has.
        told: What changes with it.
        read_rule, write_rule: The policy's rules of its own URL, which hold in bulk too.
        since: What brought its own URL; None if it was there from the beginning.
    """

    name: str
    single: str
    told: Part
    read_rule: str
    write_rule: str
    since: Feature | ExtensionFeature | None = None

    def value_in(self, values: Values) -> Value | None:
        """Return this part's value among those of several parts; None if it is left out."""
        return values.get(self.name)

    def or_empty(self, values: Values) -> Value:
        """Return this part's value among those of several parts; if it is left out, an empty one."""
        value: Value = values.get(self.name, self.empty)
        return value

    @property
    def is_extension(self) -> bool:
        """Tell whether its own URL is one of the extension."""
        return isinstance(self.since, ExtensionFeature)

    def path(self, provider_uuid: str) -> str:
        """Return its own URL at a provider."""
        above = "treeclaim/providers" if self.is_extension else "resource_providers"
        return f"/{above}/{provider_uuid}/{self.name}"

    def is_same(self, before: Value, after: Value) -> bool:
        """Tell whether two values are equal."""
        return bool(before == after)

    @property
    @abstractmethod
    def empty(self) -> Value:
        """Return what a new provider has."""

    @abstractmethod
    def read(self, document: Any) -> Value:
        """Return the value that a JSON document stands for."""

    @abstractmethod
    def written(self, value: Value) -> Any:
        """Return a value for a JSON document, the same one for equal values."""

    @abstractmethod
    def merged(self, before: Value, given: Value, *, prune: bool) -> Value:
        """Return what a provider has after a topology file was loaded.

        Args:
            before: What it had.
            given: What the file says; nothing at all empties the part.
            prune: Whether what the file does not list goes.
        """

    @abstractmethod
    def differences(self, before: Value, after: Value) -> Iterator[FieldChange]:
        """Yield what differs, in the order in which it is shown."""


@dataclass(frozen=True, slots=True)
class ListedPart(ProviderPart[Value]):
    """A part of which a provider has several, each told in a few words.

    Attributes:
        speaks_for_itself: Whether what a provider has is shown without the word for it.
    """

    speaks_for_itself: bool = False

    @abstractmethod
    def texts(self, value: Value) -> list[str]:
        """Return what a provider has, each in words."""


@dataclass(frozen=True, slots=True)
class Names(ListedPart[frozenset[str]]):
    """A part that is a set of names, such as the traits."""

    @property
    def empty(self) -> frozenset[str]:
        """Return no names."""
        return frozenset()

    def read(self, document: Any) -> frozenset[str]:
        """Return the names in a list."""
        return frozenset(document)

    def written(self, value: frozenset[str]) -> list[str]:
        """Return the names in order."""
        return sorted(value)

    def merged(
        self, before: frozenset[str], given: frozenset[str], *, prune: bool
    ) -> frozenset[str]:
        """Add the names, or replace all."""
        return given if prune or not given else before | given

    def differences(self, before: frozenset[str], after: frozenset[str]) -> Iterator[FieldChange]:
        """Yield the names that come, then those that go."""
        for sign, names in (("+", after - before), ("-", before - after)):
            for name in sorted(names):
                yield FieldChange(sign, f"{self.single} {name}")

    def texts(self, value: frozenset[str]) -> list[str]:
        """Return the names in order."""
        return sorted(value)


@dataclass(frozen=True, slots=True)
class NamedValues(ListedPart[Attributes]):
    """The attributes. Wherever their values are compared, 1 and true are different."""

    @property
    def empty(self) -> Attributes:
        """Return no attribute."""
        return {}

    def read(self, document: Any) -> Attributes:
        """Return the document itself."""
        attributes: Attributes = document
        return attributes

    def written(self, value: Attributes) -> Attributes:
        """Return the attributes in order of their names."""
        return dict(sorted(value.items()))

    def is_same(self, before: Attributes, after: Attributes) -> bool:
        """Tell whether names, types and values are equal."""
        return same_attributes(before, after)

    def merged(self, before: Attributes, given: Attributes, *, prune: bool) -> Attributes:
        """Change the attributes that are given, or replace all."""
        return given if prune or not given else {**before, **given}

    def differences(self, before: Attributes, after: Attributes) -> Iterator[FieldChange]:
        """Yield each attribute that comes, goes or has another value."""
        old, new = (
            {name: attribute_in_words(value) for name, value in values.items()}
            for values in (before, after)
        )
        for name in sorted(old.keys() | new.keys()):
            was, now = old.get(name), new.get(name)
            if was != now:
                sign = "+" if was is None else "-" if now is None else "~"
                yield FieldChange(sign, f"{self.single} {name}", was, now)

    def texts(self, value: Attributes) -> list[str]:
        """Return the attributes with their values, in order of their names."""
        return [f"{name}={attribute_in_words(value[name])}" for name in sorted(value)]


def attribute_in_words(value: AttributeValue) -> str:
    """Return a value as people read it; a text has quotes, in which every character is as it is."""
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Conditions(ListedPart[tuple[Condition, ...]]):
    """The conditions, each of which is written by itself: they are read with the parts alone."""

    @property
    def empty(self) -> tuple[Condition, ...]:
        """Return no conditions."""
        return ()

    def read(self, document: Any) -> tuple[Condition, ...]:
        """Return what a document shows; `until` is left to those who know the time."""
        return tuple(
            Condition(
                key,
                EFFECTS[members["effect"]],
                None if members.get("until") is None else utc_of(members["until"]),
                members.get("on_use", False),
                members.get("began", True) or not members.get("on_use", False),
                members.get("reason", ""),
            )
            for key, members in sorted(document.items())
        )

    def written(self, value: tuple[Condition, ...]) -> dict[str, Any]:
        """Return the conditions by their keys."""
        return shown_by_key(value)

    def merged(
        self, before: tuple[Condition, ...], given: tuple[Condition, ...], *, prune: bool
    ) -> tuple[Condition, ...]:
        """Keep what there is: files know none."""
        del given, prune
        return before

    def differences(
        self, before: tuple[Condition, ...], after: tuple[Condition, ...]
    ) -> Iterator[FieldChange]:
        """Yield those that come, then those that go."""
        for sign, conditions in (("+", set(after) - set(before)), ("-", set(before) - set(after))):
            for condition in sorted(conditions):
                yield FieldChange(sign, f"{self.single} {condition.key}")

    def texts(self, value: tuple[Condition, ...]) -> list[str]:
        """Return the conditions in words."""
        return [condition.in_words() for condition in sorted(value)]


Stock = Mapping[str, Mapping[str, Any]]
"""Inventories as clients see them: fields by resource class."""

DEFAULTS: Mapping[str, Any] = {
    field.name: field.default
    for field in fields(Inventory)
    if field.name in AMOUNTS and field.default is not MISSING
}
"""Default values of the fields of a new inventory (contract page 30, section 1)."""


@dataclass(frozen=True, slots=True)
class Inventories(ProviderPart[Stock]):
    """The inventories."""

    @property
    def empty(self) -> Stock:
        """Return no inventory."""
        return {}

    def read(self, document: Any) -> Stock:
        """Return the document, without saying of inventories that they consume nothing.

        A server that does not know of that says nothing either.
        """
        return {
            name: fields if fields.get("consumes", True) else _without_consumption(fields)
            for name, fields in document.items()
        }

    def written(self, value: Stock) -> Stock:
        """Return the value itself."""
        return value

    def merged(self, before: Stock, given: Stock, *, prune: bool) -> Stock:
        """Change the fields that are given, of the classes that are given."""
        changed = {
            name: {**DEFAULTS, **before.get(name, {}), **given_fields}
            for name, given_fields in given.items()
        }
        for name, stock in changed.items():
            if stock.get("consumes") == [] and not before.get(name, {}).get("consumes"):
                changed[name] = _without_consumption(stock)
        return changed if prune or not given else {**before, **changed}

    def differences(self, before: Stock, after: Stock) -> Iterator[FieldChange]:
        """Yield the inventories that come or go, and each field that changes."""
        for name in sorted(before.keys() | after.keys()):
            path = f"{self.name}.{name}"
            if name not in before:
                yield FieldChange("+", path, new=inventory_in_words(after[name]))
            elif name not in after:
                yield FieldChange("-", path, inventory_in_words(before[name]))
            else:
                for field, new in after[name].items():
                    if before[name].get(field) != new:
                        old = _field_in_words(before[name].get(field))
                        yield FieldChange("~", f"{path}.{field}", old, _field_in_words(new))


def _without_consumption(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in fields.items() if field != "consumes"}


def _field_in_words(value: Any) -> str:
    """Return a field of an inventory in words: a number, or what each unit consumes."""
    if not isinstance(value, list):
        return str(value)
    return consumption_in_words(value) or "nothing"


def consumption_in_words(consumes: Sequence[Mapping[str, Any]]) -> str:
    """Return what each unit of an inventory consumes in words (contract page 102, section 2)."""
    return ", ".join(
        f"{entry['amount']} {entry['resource_class']} of {entry['provider']}" for entry in consumes
    )


def inventory_in_words(inventory: Mapping[str, Any]) -> str:
    """Return an inventory in words: its total, and every unusual value."""
    unusual = [
        f"{field} {inventory[field]}"
        for field, usual in DEFAULTS.items()
        if inventory.get(field, usual) != usual
    ]
    if inventory.get("consumes"):
        unusual.append(f"each consumes {consumption_in_words(inventory['consumes'])}")
    return ", ".join([f"total {inventory['total']}", *unusual])


INVENTORIES = Inventories(
    "inventories",
    "inventory",
    Part.INVENTORIES,
    "placement:resource_providers:inventories:list",
    "placement:resource_providers:inventories:update",
)
TRAITS = Names(
    "traits",
    "trait",
    Part.TRAITS,
    "placement:resource_providers:traits:list",
    "placement:resource_providers:traits:update",
    since=Feature.TRAITS,
    speaks_for_itself=True,
)
AGGREGATES = Names(
    "aggregates",
    "aggregate",
    Part.AGGREGATES,
    "placement:resource_providers:aggregates:list",
    "placement:resource_providers:aggregates:update",
    since=Feature.AGGREGATES,
)

ATTRIBUTES = NamedValues(
    "attributes",
    "attribute",
    Part.ATTRIBUTES,
    "placement:resource_providers:show",
    "treeclaim:attributes:update",
    since=ExtensionFeature.ALL,
)

LINKED_PARTS: Sequence[Names] = (TRAITS, AGGREGATES)
"""Parts that consist of links to names that many providers share."""

LISTED_PARTS: Sequence[ListedPart[Any]] = (*LINKED_PARTS, ATTRIBUTES)
"""All but the inventories."""

CONDITIONS = Conditions(
    "conditions",
    "condition",
    Part.CONDITIONS,
    "placement:resource_providers:show",
    "treeclaim:conditions:update",
    since=ExtensionFeature.ALL,
)

SHOWN_LINKS: Sequence[ListedPart[Any]] = (*LINKED_PARTS, CONDITIONS)
"""Parts whose links the Forest keeps: conditions are no part that is written as a whole."""

SHOWN_PARTS: Sequence[ListedPart[Any]] = (*LISTED_PARTS, CONDITIONS)
"""Parts that are shown of a provider beside its inventories."""

PARTS: Sequence[ProviderPart[Any]] = (INVENTORIES, *LISTED_PARTS)
"""All parts, in the order in which they are written and shown."""


PART_NAMES = frozenset(part.name for part in PARTS)
