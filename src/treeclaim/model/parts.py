# SPDX-License-Identifier: Apache-2.0
"""The parts of a provider, each declared once.

A declaration determines the rules that hold, the parts that may be included in bulk, and how a value is read and
written as JSON. Each layer has a list of its own for what it alone does with a part:

- `store/schema/tables.py`: the table whose rows belong to a provider;
- `store/reading/providers/parts.py`: how it is loaded, of some providers and of all;
- `store/operations/providers/entries.py`: how it is written;
- `forest/listing/texts.py`: its JSON text, where the names of what it has are looked up;
- `api/resources/extension/parts.py`: the schemas of a value;
- `client/states.py`: how values are merged and compared;
- `client/topology/entries.py`: how a person writes it down.

`tests/model/test_parts.py` fails where a list lacks a part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, Generic, TypeVar, cast

from treeclaim.model.provider import Attributes, are_same_attributes

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
class ProviderPart(Generic[Value]):
    """A part of a provider, which clients replace as a whole; its value is a JSON object.

    Attributes:
        name: The member of JSON documents and topology files, the word in `include`, and the last
            word of its own URL.
        single: The noun for a single entry.
        news_part: The part of the change feed that changes with it.
        read_rule, write_rule: The policy rules of its own URL, which apply to bulk operations too.
        is_extension: Whether its own URL belongs to the extension.
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

    def value_in(self, values: Values) -> Value | None:
        """Return this part's value among those of several parts; None if it is left out."""
        return values.get(self.name)

    def or_empty(self, values: Values) -> Value:
        """Return this part's value among those of several parts; if it is left out, an empty one."""
        value: Value = values.get(self.name, self.empty)
        return value

    def path(self, provider_uuid: str) -> str:
        """Return its own URL at a provider."""
        above = "treeclaim/providers" if self.is_extension else "resource_providers"
        return f"/{above}/{provider_uuid}/{self.name}"

    def is_same(self, before: Value, after: Value) -> bool:
        """Return whether two values are equal."""
        return bool(before == after)

    def read(self, document: Any) -> Value:
        """Return the value that a JSON document stands for."""
        value: Value = document
        return value

    def written(self, value: Value) -> Any:
        """Return a value for a JSON document, the same one for equal values."""
        return value


@dataclass(frozen=True, slots=True)
class NameSet(ProviderPart[frozenset[str]]):
    """A part that is a set of names, such as the traits; as JSON, a list."""

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


@dataclass(frozen=True, slots=True)
class AttributesPart(ProviderPart[Attributes]):
    """The attributes. Wherever their values are compared, 1 and true are different."""

    def written(self, value: Attributes) -> Attributes:
        """Return the attributes in order of their names."""
        return dict(sorted(value.items()))

    def is_same(self, before: Attributes, after: Attributes) -> bool:
        """Return whether names, types and values are equal."""
        return are_same_attributes(before, after)


Stock = Mapping[str, Mapping[str, Any]]
"""Inventories as clients see them: fields by resource class."""


INVENTORIES: ProviderPart[Stock] = ProviderPart(
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
"""Parts that consist of links to names that many providers share."""

LISTED_PARTS: Sequence[ProviderPart[Any]] = (*LINKED_PARTS, ATTRIBUTES)
"""All but the inventories."""

CONDITIONS: ProviderPart[Mapping[str, Any]] = ProviderPart(
    "conditions",
    "condition",
    Part.CONDITIONS,
    "placement:resource_providers:show",
    "treeclaim:conditions:update",
    is_extension=True,
)

SHOWN_LINKS: Sequence[ProviderPart[Any]] = (*LINKED_PARTS, CONDITIONS)
"""Parts whose links the Forest keeps: conditions are no part that is written as a whole."""

SHOWN_PARTS: Sequence[ProviderPart[Any]] = (*LISTED_PARTS, CONDITIONS)
"""Parts that are shown of a provider beside its inventories."""

PARTS: Sequence[ProviderPart[Any]] = (INVENTORIES, *LISTED_PARTS)
"""All parts, in the order in which they are written and shown."""
