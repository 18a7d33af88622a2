# SPDX-License-Identifier: Apache-2.0
"""The parts of a provider, each declared once.

A declaration has the policy rules of a part, its name in bulk operations, and the conversion of its values from and to
JSON. Each layer has a list of its operations on parts:

- `store/schema/tables.py`: tables;
- `store/reading/providers/parts.py`: loading;
- `store/operations/providers/entries.py`: writing;
- `forest/listing/texts.py`: JSON texts;
- `api/resources/extension/provider_batch.py`: schemas;
- `client/states.py`: merging and comparing;
- `client/topology/entries.py`: topology files.

`tests/model/test_parts.py` fails if a list lacks a part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, Generic, TypeVar, cast

from treeclaim.model.provider import Attributes, are_same_attributes

Value = TypeVar("Value")

PartValues = Mapping[str, Any]
"""Values of parts by the parts' names; unknown and omitted ones are absent."""


class Part(IntFlag):
    """Parts of a provider that change separately; the change feed contains the numbers."""

    PROVIDER = 1
    """Name, parent and root."""
    INVENTORIES = 2
    TRAITS = 4
    AGGREGATES = 8
    ALLOCATIONS = 16
    """Allocations, and therefore usages."""
    ATTRIBUTES = 32
    CONDITIONS = 64

    @property
    def word(self) -> str:
        """Return the name that clients use."""
        return str(self.name).lower()


EVERYTHING = Part(sum(Part))
"""The changed parts of a new provider, and of a provider whose changes are unknown."""


@dataclass(frozen=True, slots=True)
class ProviderPart(Generic[Value]):
    """A part of a provider, which clients replace as a whole; its value is a JSON object.

    Attributes:
        name: The member of JSON documents and topology files, the word in `include`, and the last segment of the URL.
        single: The noun for one entry.
        news_part: The part in the change feed.
        read_rule, write_rule: The policy rules of the URL, which apply to bulk operations too.
        is_extension: Whether the URL belongs to the extension.
    """

    name: str
    single: str
    news_part: Part
    read_rule: str
    write_rule: str
    is_extension: bool = False

    @property
    def empty(self) -> Value:
        """Return the value of a new provider."""
        return cast("Value", {})

    def value_in(self, values: PartValues) -> Value | None:
        """Return the value of this part; None if it is absent."""
        return values.get(self.name)

    def or_empty(self, values: PartValues) -> Value:
        """Return the value of this part; an empty value if it is absent."""
        value: Value = values.get(self.name, self.empty)
        return value

    def path(self, provider_uuid: str) -> str:
        """Return the URL of the part of a provider."""
        above = "treeclaim/providers" if self.is_extension else "resource_providers"
        return f"/{above}/{provider_uuid}/{self.name}"

    def is_same(self, before: Value, after: Value) -> bool:
        """Return whether two values are equal."""
        return bool(before == after)

    def from_json(self, document: Any) -> Value:
        """Return the value of a JSON document."""
        value: Value = document
        return value

    def to_json(self, value: Value) -> Any:
        """Return the JSON document of a value; equal values have equal documents."""
        return value


@dataclass(frozen=True, slots=True)
class NameSet(ProviderPart[frozenset[str]]):
    """A part whose value is a set of names, such as traits, and a list in JSON."""

    @property
    def empty(self) -> frozenset[str]:
        """Return an empty set."""
        return frozenset()

    def from_json(self, document: Any) -> frozenset[str]:
        """Return the set of a JSON list."""
        return frozenset(document)

    def to_json(self, value: frozenset[str]) -> list[str]:
        """Return the names as a sorted JSON list."""
        return sorted(value)


@dataclass(frozen=True, slots=True)
class AttributesPart(ProviderPart[Attributes]):
    """The attributes; in comparisons, 1 and true differ."""

    def to_json(self, value: Attributes) -> Attributes:
        """Return the attributes sorted by name."""
        return dict(sorted(value.items()))

    def is_same(self, before: Attributes, after: Attributes) -> bool:
        """Return whether names, values and types are equal."""
        return are_same_attributes(before, after)


INVENTORIES: ProviderPart[Mapping[str, Mapping[str, Any]]] = ProviderPart(
    "inventories",
    "inventory",
    Part.INVENTORIES,
    "placement:resource_providers:inventories:list",
    "placement:resource_providers:inventories:update",
)
TRAITS = NameSet(
    "traits",
    "trait",
    Part.TRAITS,
    "placement:resource_providers:traits:list",
    "placement:resource_providers:traits:update",
)
AGGREGATES = NameSet(
    "aggregates",
    "aggregate",
    Part.AGGREGATES,
    "placement:resource_providers:aggregates:list",
    "placement:resource_providers:aggregates:update",
)

ATTRIBUTES = AttributesPart(
    "attributes",
    "attribute",
    Part.ATTRIBUTES,
    "placement:resource_providers:show",
    "treeclaim:attributes:update",
    is_extension=True,
)

LINKED_PARTS: Sequence[NameSet] = (TRAITS, AGGREGATES)
"""Parts whose entries are names that many providers share."""

CONDITIONS: ProviderPart[Mapping[str, Any]] = ProviderPart(
    "conditions",
    "condition",
    Part.CONDITIONS,
    "placement:resource_providers:show",
    "treeclaim:conditions:update",
    is_extension=True,
)

SHOWN_LINKS: Sequence[ProviderPart[Any]] = (*LINKED_PARTS, CONDITIONS)
"""Parts whose entries the Forest stores as links."""

SHOWN_PARTS: Sequence[ProviderPart[Any]] = (*LINKED_PARTS, ATTRIBUTES, CONDITIONS)
"""Parts that lists of providers show, except inventories."""

PARTS: Sequence[ProviderPart[Any]] = (INVENTORIES, *LINKED_PARTS, ATTRIBUTES)
"""The parts that clients replace as a whole, in the order of writing. Conditions are replaced one by one."""
