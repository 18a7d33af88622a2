# SPDX-License-Identifier: Apache-2.0
"""Resource providers with their inventories, attributes and conditions as values, and as the store loads them.

Rules: contract pages 20, 30, 70 (sections 1 and 1.3) and 102.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any, NamedTuple

AttributeValue = bool | int | str

Attributes = Mapping[str, AttributeValue]
"""The attributes of a provider, by name."""

NO_ATTRIBUTES: Attributes = {}
"""The attributes of every provider that has none; shared, so never written to."""

MOST_ATTRIBUTES = 64
"""Attributes that a provider may have."""

GREATEST_NUMBER = 2**53 - 1
"""The greatest absolute value of an integer."""

LONGEST_TEXT = 255
"""The most characters a text may have; it has at least one."""

RESERVED_WORDS = frozenset({"and", "or", "not", "exists", "in", "true", "false"})
"""The words of the expression language, which cannot be names."""

NAME_PATTERN = rf"^(?!(?:{'|'.join(sorted(RESERVED_WORDS))})$)[a-z][a-z0-9_]{{0,62}}$"
"""The pattern of names of attributes, as JSON Schema writes it."""

TEXT_PATTERN = rf"^[^\x00-\x1f\x7f-\x9f]{{1,{LONGEST_TEXT}}}$"
"""The pattern of texts of attributes: no control characters."""

_NAME = re.compile(NAME_PATTERN.replace("$", r"\Z"))
_TEXT = re.compile(TEXT_PATTERN.replace("$", r"\Z"))
_LONE = re.compile("[\\ud800-\\udfff]")


class AttributeKind(IntEnum):
    """The type of a value; values of different types are never equal."""

    BOOL = 1
    INTEGER = 2
    TEXT = 3


def find_attribute_kind(value: AttributeValue) -> AttributeKind:
    """Return the type of a value; for Python, a bool is an integer too."""
    if isinstance(value, bool):
        return AttributeKind.BOOL
    return AttributeKind.INTEGER if isinstance(value, int) else AttributeKind.TEXT


def is_attribute_name(name: str) -> bool:
    """Return whether an attribute may have this name."""
    return _NAME.match(name) is not None


def is_attribute_value(value: object) -> bool:
    """Return whether an attribute may have this value."""
    if isinstance(value, int):
        return -GREATEST_NUMBER <= value <= GREATEST_NUMBER
    # A single surrogate is not a character: no encoding has it.
    return isinstance(value, str) and _TEXT.match(value) is not None and not _LONE.search(value)


def is_same_value(first: AttributeValue, other: AttributeValue) -> bool:
    """Return whether two values are equal and of the same type: 1 and True are not."""
    return first == other and find_attribute_kind(first) is find_attribute_kind(other)


def are_same_attributes(first: Attributes, other: Attributes) -> bool:
    """Return whether both have the same names with the same values."""
    return first == other and all(is_same_value(first[name], other[name]) for name in first)


MAXIMUM_INTEGER = 2_147_483_647
"""Greatest value of every integer field of an inventory (signed 32 bits)."""

MAXIMUM_ALLOCATION_RATIO = 3.40282e38
"""Greatest allocation ratio: what a single-precision column can hold."""


AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
"""The attributes of an inventory besides what it consumes."""

MOST_CONSUMED = 16
"""Inventories that an inventory consumes (contract page 102, section 2)."""

MOST_CONSUMED_UNITS = 1_000_000
"""Units of another inventory that a unit may consume."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """The consumption of another inventory by each allocated unit (page 102, section 2).

    Attributes:
        provider: Uuid of the provider whose inventory is consumed.
        resource_class: Its class.
        amount: Units of it, at least 1.
    """

    provider: str
    resource_class: str
    amount: int

    @property
    def document(self) -> dict[str, Any]:
        """Return it as clients see it."""
        return {
            "provider": self.provider,
            "resource_class": self.resource_class,
            "amount": self.amount,
        }


@dataclass(frozen=True, slots=True)
class Inventory:
    """The amount of one resource class that one provider offers.

    Attributes:
        total: Units that exist, at least 1.
        reserved: Units kept back from claims.
        min_unit: Least amount of one claim.
        max_unit: Greatest amount of one claim.
        step_size: A claim's amount is a multiple of this.
        allocation_ratio: Overcommitment; capacity is `(total - reserved) * allocation_ratio`.
        consumes: The consumption of a unit elsewhere, as a write states it; None to leave it unchanged.
    """

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAXIMUM_INTEGER
    step_size: int = 1
    allocation_ratio: float = 1.0
    consumes: Sequence[Consumption] | None = None

    @property
    def amounts(self) -> dict[str, Any]:
        """Return the amounts alone, by the names of their attributes."""
        return {name: getattr(self, name) for name in AMOUNTS}

    @property
    def capacity(self) -> float:
        """Return the total that can be claimed, unrounded; claims are compared with it."""
        return (self.total - self.reserved) * self.allocation_ratio

    @property
    def whole_capacity(self) -> int:
        """Return the capacity truncated toward zero, as it is shown to clients."""
        return int(self.capacity)

    def admits(self, amount: int) -> bool:
        """Return whether one claim may have this amount, by units and step, not by free capacity."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


MOST_CONDITIONS = 16
"""Conditions that one provider may have."""

MOST_TOLERATED = 64
"""Keys that one consumer of a write may tolerate."""

LONGEST_REASON = 255
"""Characters of a reason."""

CONDITION_KEY = "[A-Z][A-Z0-9_]{0,62}"
"""The form of a key, as a regular expression."""


class Effect(IntEnum):
    """Effects of a condition; the numbers are stored."""

    NO_NEW = 1
    """The provider and its descendants get no new allocations."""
    LEAVE = 2
    """Like `no_new`; in addition, consumers that are still there are reported."""

    @property
    def word(self) -> str:
        """Return the effect as clients have it."""
        return self.name.lower()


EFFECTS: Mapping[str, Effect] = {effect.word: effect for effect in Effect}
"""Effects by the word that clients use."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a provider.

    Attributes:
        key: Unique for its provider.
        effect: The effect.
        until: When it is gone, by the database's clock: naive UTC in whole seconds; None for never.
        on_use: Whether it begins with the first write that uses more there.
        began: Whether it is in effect.
        reason: For people.
    """

    key: str
    effect: Effect
    until: datetime | None = None
    on_use: bool = False
    began: bool = True
    reason: str = ""

    def __lt__(self, other: "Condition") -> bool:
        """Order by key, then by all else, so that lists of conditions have one order."""
        return self._rank < other._rank

    @property
    def _rank(self) -> tuple[Any, ...]:
        return self.key, self.effect, str(self.until), self.on_use, self.began, self.reason

    def counts(self, tolerated: Collection[str]) -> bool:
        """Return whether it affects consumers that tolerate some keys."""
        return self.began and self.key not in tolerated

    def has_ended(self, now: datetime) -> bool:
        """Return whether it has expired, given the time of the database's clock."""
        return self.until is not None and self.until <= now

    def to_document(self) -> dict[str, Any]:
        """Return it as clients see it, without its key."""
        until = self.until
        return {
            "effect": self.effect.word,
            "until": None if until is None else f"{until.isoformat(timespec='seconds')}Z",
            "reason": self.reason,
            "on_use": self.on_use,
            "began": self.began,
        }


def make_condition_documents(conditions: Iterable[Condition]) -> dict[str, dict[str, Any]]:
    """Return the conditions of a provider as clients see them."""
    return {condition.key: condition.to_document() for condition in conditions}


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider as clients see it (contract page 20, section 1).

    Attributes:
        uuid: Lower-case, dashed.
        name: Unique over all providers.
        generation: Counter for optimistic concurrency, 0 when created.
        parent_uuid: The direct parent, None for a root.
        root_uuid: The top of the tree; its own uuid for a root.
        modified_at: Last update (or creation), in seconds since the epoch.
    """

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str
    modified_at: float


class ConsumptionRecord(NamedTuple):
    """The consumption of each allocated unit of an inventory (contract page 102, section 2), by ids.

    Attributes:
        provider_id, class_id: Identify the inventory consumed.
        amount: Units.
    """

    provider_id: int
    class_id: int
    amount: int


@dataclass(frozen=True, slots=True)
class InventoryRecord:
    """An inventory with its usage, as the store loads it.

    Attributes:
        class_id: Id of the resource class.
        inventory: The amounts.
        used: Sum of all allocations of this class on this provider.
        modified_at: Last update (or creation) of the inventory, in seconds since the epoch.
        consumes: Consumption of a unit elsewhere in the tree, ascending.
    """

    class_id: int
    inventory: Inventory
    used: int
    modified_at: float
    consumes: tuple[ConsumptionRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderRecord:
    """A resource provider with all that a search needs, as the store loads it.

    Attributes:
        id: The row's id in the database; order of ids is the canonical order of providers.
        uuid: Lower-case, dashed.
        name: Unique over all providers.
        generation: Counter for optimistic concurrency.
        parent_id: Id of the direct parent, None for a root.
        root_id: Id of the tree's root; its own id for a root.
        modified_at: Last update (or creation), in seconds since the epoch.
        inventories: In order of class id.
        links: Entries of every other part, ascending, by the part's name: ids of traits, uuids
            of aggregates as they were given, conditions.
        attributes: Values by name.
    """

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    root_id: int
    modified_at: float
    inventories: tuple[InventoryRecord, ...]
    links: Mapping[str, tuple[Any, ...]]
    attributes: Attributes = field(default_factory=lambda: NO_ATTRIBUTES)
