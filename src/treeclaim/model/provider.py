# SPDX-License-Identifier: Apache-2.0
"""Resource providers with their inventories, attributes and conditions: values, and records that the store loads.

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
"""Shared by all providers without attributes; never modified."""

MOST_ATTRIBUTES = 64

GREATEST_NUMBER = 2**53 - 1
"""Greatest absolute value of an integer attribute."""

LONGEST_TEXT = 255
"""Most characters of a text attribute."""

RESERVED_WORDS = frozenset({"and", "or", "not", "exists", "in", "true", "false"})
"""Words of the expression language, which are no attribute names."""

NAME_PATTERN = rf"^(?!(?:{'|'.join(sorted(RESERVED_WORDS))})$)[a-z][a-z0-9_]{{0,62}}$"
"""Pattern of attribute names for JSON Schema."""

TEXT_PATTERN = rf"^[^\x00-\x1f\x7f-\x9f]{{1,{LONGEST_TEXT}}}$"
"""Pattern of text attributes for JSON Schema: no control characters."""

_NAME = re.compile(NAME_PATTERN.replace("$", r"\Z"))
_TEXT = re.compile(TEXT_PATTERN.replace("$", r"\Z"))
_LONE = re.compile("[\\ud800-\\udfff]")


class AttributeKind(IntEnum):
    """The type of an attribute; values of different types are never equal."""

    BOOL = 1
    INTEGER = 2
    TEXT = 3


def find_attribute_kind(value: AttributeValue) -> AttributeKind:
    """Return the type of a value: in Python, a bool is an integer too."""
    if isinstance(value, bool):
        return AttributeKind.BOOL
    return AttributeKind.INTEGER if isinstance(value, int) else AttributeKind.TEXT


def is_attribute_name(name: str) -> bool:
    """Return whether a name is valid for an attribute."""
    return _NAME.match(name) is not None


def is_attribute_value(value: object) -> bool:
    """Return whether a value is valid for an attribute."""
    if isinstance(value, int):
        return -GREATEST_NUMBER <= value <= GREATEST_NUMBER
    # A lone surrogate is not a character, and cannot be encoded.
    return isinstance(value, str) and _TEXT.match(value) is not None and not _LONE.search(value)


def are_same_attributes(first: Attributes, second: Attributes) -> bool:
    """Return whether names, values and types are equal; 1 and True differ by type."""
    return first == second and all(
        find_attribute_kind(value) is find_attribute_kind(second[name])
        for name, value in first.items()
    )


MAXIMUM_INTEGER = 2_147_483_647
"""Greatest value of the integers of an inventory (signed 32 bits)."""

MAXIMUM_ALLOCATION_RATIO = 3.40282e38
"""Greatest allocation ratio, that of a single-precision column."""

AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
"""Fields of an inventory, except its consumption."""

MOST_CONSUMED = 16
"""Most inventories that one inventory consumes (contract page 102, section 2)."""

MOST_CONSUMED_UNITS = 1_000_000
"""Most units of another inventory that one unit consumes."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """The consumption of another inventory, given by provider UUID and class, by each allocated unit (page 102)."""

    provider: str
    resource_class: str
    amount: int

    @property
    def document(self) -> dict[str, Any]:
        """Return the JSON object of the API."""
        return {
            "provider": self.provider,
            "resource_class": self.resource_class,
            "amount": self.amount,
        }


@dataclass(frozen=True, slots=True)
class Inventory:
    """The amount of one resource class that one provider offers.

    Attributes:
        total: Existing units, at least 1.
        reserved: Units that cannot be claimed.
        min_unit, max_unit, step_size: Bounds of the amount of one claim, and its divisor.
        allocation_ratio: Overcommitment; capacity is `(total - reserved) * allocation_ratio`.
        consumes: Consumption that a write sets; None to leave it unchanged.
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
        """Return the fields of `AMOUNTS` by name."""
        return {name: getattr(self, name) for name in AMOUNTS}

    @property
    def capacity(self) -> float:
        """Return the unrounded units that can be claimed together; claims are compared with this number."""
        return (self.total - self.reserved) * self.allocation_ratio

    @property
    def whole_capacity(self) -> int:
        """Return the capacity that clients see, truncated toward zero."""
        return int(self.capacity)

    def admits(self, amount: int) -> bool:
        """Return whether an amount satisfies min_unit, max_unit and step_size; capacity is not checked."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


MOST_CONDITIONS = 16

MOST_TOLERATED = 64
"""Most keys that one consumer of a write tolerates."""

LONGEST_REASON = 255
"""Most characters of the reason of a condition."""

CONDITION_KEY = "[A-Z][A-Z0-9_]{0,62}"
"""Pattern of the keys of conditions."""


class Effect(IntEnum):
    """Effects of a condition; the database contains the numbers."""

    NO_NEW = 1
    """New allocations at the provider and its descendants are refused."""
    LEAVE = 2
    """Like `NO_NEW`; in addition, audits report the remaining consumers."""

    @property
    def word(self) -> str:
        """Return the name that clients use."""
        return self.name.lower()


EFFECTS: Mapping[str, Effect] = {effect.word: effect for effect in Effect}
"""Effects by the name that clients use."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a provider.

    Attributes:
        key: Unique within the provider.
        until: Expiry by the database's clock, in naive UTC and whole seconds; None for never.
        on_use: Whether the first write that increases the usage starts the condition.
        began: Whether the condition is in effect.
        reason: A text for people.
    """

    key: str
    effect: Effect
    until: datetime | None = None
    on_use: bool = False
    began: bool = True
    reason: str = ""

    def __lt__(self, other: "Condition") -> bool:
        """Order by key, then by all other fields, so that lists of conditions have one order."""
        return self._rank < other._rank

    @property
    def _rank(self) -> tuple[Any, ...]:
        return self.key, self.effect, str(self.until), self.on_use, self.began, self.reason

    def affects(self, tolerated: Collection[str]) -> bool:
        """Return whether the condition affects consumers that tolerate these keys."""
        return self.began and self.key not in tolerated

    def has_ended(self, now: datetime) -> bool:
        """Return whether the condition has expired at a time of the database's clock."""
        return self.until is not None and self.until <= now

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of the API, which does not contain the key."""
        until = self.until
        return {
            "effect": self.effect.word,
            "until": None if until is None else f"{until.isoformat(timespec='seconds')}Z",
            "reason": self.reason,
            "on_use": self.on_use,
            "began": self.began,
        }


def make_condition_documents(conditions: Iterable[Condition]) -> dict[str, dict[str, Any]]:
    """Return the JSON object of a provider's conditions."""
    return {condition.key: condition.to_document() for condition in conditions}


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider of the API (contract page 20, section 1).

    A root has no parent, and itself as root. `modified_at` is the last update or creation, in seconds since the epoch.
    """

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str
    modified_at: float


class ConsumptionRecord(NamedTuple):
    """A consumption as the store loads it, with the ids of the consumed inventory."""

    provider_id: int
    class_id: int
    amount: int


@dataclass(frozen=True, slots=True)
class InventoryRecord:
    """An inventory with its usage, as the store loads it.

    Attributes:
        used: Sum of all allocations of this class on this provider.
        modified_at: Last update (or creation) of the inventory, in seconds since the epoch.
        consumes: Consumption of each unit, ascending.
    """

    class_id: int
    inventory: Inventory
    used: int
    modified_at: float
    consumes: tuple[ConsumptionRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderRecord:
    """A resource provider with all data of a search, as the store loads it.

    Attributes:
        id: The id in the database; the order of ids is the canonical order of providers.
        root_id: The provider's own id for a root.
        modified_at: Last update (or creation), in seconds since the epoch.
        inventories: In order of class id.
        links: Entries of each part in `SHOWN_LINKS`, ascending, by the part's name: ids of traits, uuids of aggregates in
            the client's spelling, and conditions.
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
