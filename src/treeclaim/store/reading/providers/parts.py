# SPDX-License-Identifier: Apache-2.0
"""The parts of providers that a Forest loads: a query for each, and the conversion of its values.

`records.py` makes records of them, `whole.py` arrays. Attributes are stored as JSON in ASCII, so each database
stores them, and 1, true and "1" stay different in each collation.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from treeclaim.model import parts
from treeclaim.model.provider import (
    AMOUNTS,
    Attributes,
    AttributeValue,
    Condition,
    Effect,
    is_attribute_name,
    is_attribute_value,
)
from treeclaim.model.whole import NO_PARENT
from treeclaim.store.database.transactions import as_datetime
from treeclaim.store.reading.providers.json_columns import Expressions


@dataclass(frozen=True, slots=True)
class LoadedPart:
    """A part of providers, as a query for its rows.

    Attributes:
        expressions: SQL of the columns by name; the first one is the id of the provider.
        source: SQL of the tables.
        groups: The GROUP BY clause, if any.
    """

    name: str
    expressions: Expressions
    source: str
    groups: str = ""

    def select(self, condition: str) -> str:
        """Return the query from its FROM on, for a condition on `{id}`, the id of the provider."""
        provider_id = next(iter(self.expressions.values()))
        return f"FROM {self.source} WHERE {condition.format(id=provider_id)} {self.groups}"


_ID = {"provider_id": "resource_provider_id"}
_CLASS = _ID | {"class_id": "resource_class_id"}
_TIME = {"modified_at": "COALESCE(updated_at, created_at)"}

PROVIDERS = LoadedPart(
    "providers",
    {
        "id": "id",
        "uuid": "PLAIN(uuid)",
        "name": "COALESCE(PLAIN(name), '')",
        "generation": "COALESCE(generation, 0)",
        "parent_id": f"COALESCE(parent_provider_id, {NO_PARENT})",
        "root_id": "COALESCE(root_provider_id, id)",
        **_TIME,
    },
    "resource_providers",
)
INVENTORIES = LoadedPart(
    parts.INVENTORIES.name,
    {
        **_CLASS,
        **{name: name for name in AMOUNTS},
        "allocation_ratio": "EXACT(allocation_ratio)",
        **_TIME,
    },
    "inventories",
)
USAGE = LoadedPart(
    "usage",
    {**_CLASS, "used": "SUM(used)"},
    "allocations",
    "GROUP BY resource_provider_id, resource_class_id",
)
CONSUMPTION = LoadedPart(
    "consumption",
    {
        **_CLASS,
        "consumed_provider_id": "consumed_provider_id",
        "consumed_class_id": "consumed_class_id",
        "amount": "amount",
    },
    "treeclaim_consumption",
)
TRAITS = LoadedPart(parts.TRAITS.name, {**_ID, "other": "trait_id"}, "resource_provider_traits")
AGGREGATE_IDS = LoadedPart(
    parts.AGGREGATES.name, {**_ID, "other": "aggregate_id"}, "resource_provider_aggregates"
)
AGGREGATES = LoadedPart(
    AGGREGATE_IDS.name,
    {**_ID, "other": "PLAIN(uuid)"},
    "resource_provider_aggregates JOIN placement_aggregates ON placement_aggregates.id = aggregate_id",
)
CONDITIONS = LoadedPart(
    parts.CONDITIONS.name,
    {
        **_ID,
        "name": "PLAIN(name)",
        "effect": "effect",
        "ends_at": "ends_at",
        "on_use": "on_use",
        "began": "began",
        "reason": "PLAIN(reason)",
    },
    "treeclaim_conditions",
)
ATTRIBUTES = LoadedPart(
    parts.ATTRIBUTES.name,
    {**_ID, "name": "PLAIN(name)", "value": "PLAIN(value)"},
    "treeclaim_attributes",
)


def make_condition(values: Iterable[Any]) -> Condition:
    """Return the condition of the columns of `CONDITIONS` without the provider."""
    # Drivers may return numbers for booleans.
    key, effect, ends_at, on_use, began, reason = values
    return Condition(
        key, Effect(effect), as_datetime(ends_at), bool(on_use), bool(began), json.loads(reason)
    )


def read_condition(row: Any) -> Condition:
    """Return the condition of a row of `treeclaim_conditions`."""
    return make_condition((row.name, row.effect, row.ends_at, row.on_use, row.began, row.reason))


def parse_attribute(text: str) -> AttributeValue | None:
    """Return the value of a stored attribute; None for an invalid text of another program."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if is_attribute_value(value) else None


def make_attributes(rows: Iterable[tuple[str, str]]) -> Attributes:
    """Return the valid attributes, given names and stored texts."""
    values = {name: parse_attribute(text) for name, text in rows if is_attribute_name(name)}
    return {name: value for name, value in values.items() if value is not None}
