# SPDX-License-Identifier: Apache-2.0
"""The parts of providers that a Forest loads: a query for each, and the conversion of its values.

`some_providers.py` makes records of them, `whole.py` arrays. The value of an attribute is JSON of ASCII
characters, which every database stores as text. Texts also keep 1, true and "1" apart, which are equal
in Python or in some collations.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson
import sqlalchemy as sa

from treeclaim.model import parts
from treeclaim.model.provider import (
    Attributes,
    AttributeValue,
    Condition,
    Effect,
    is_attribute_name,
    is_attribute_value,
)
from treeclaim.model.whole import NO_PARENT
from treeclaim.store.database.functions import ExactText
from treeclaim.store.database.transactions import as_datetime
from treeclaim.store.schema.tables import (
    allocations,
    attributes,
    conditions,
    consumption,
    inventories,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)


@dataclass(frozen=True, slots=True, eq=False)
class LoadedPart:
    """A part of providers, with a query for all of its rows, whose first column is `provider_id`."""

    name: str
    provider_id: sa.Column[int]
    query: sa.Select[Any]


def _make_part(name: str, provider_id: sa.Column[int], *columns: Any) -> LoadedPart:
    return LoadedPart(name, provider_id, sa.select(provider_id.label("provider_id"), *columns))


def _modified_at(table: sa.Table) -> sa.Label[Any]:
    return sa.func.coalesce(table.c.updated_at, table.c.created_at).label("modified_at")


PROVIDERS = LoadedPart(
    "providers",
    resource_providers.c.id,
    sa.select(
        resource_providers.c.id,
        resource_providers.c.uuid,
        sa.func.coalesce(resource_providers.c.name, "").label("name"),
        sa.func.coalesce(resource_providers.c.generation, 0).label("generation"),
        sa.func.coalesce(resource_providers.c.parent_provider_id, NO_PARENT).label("parent_id"),
        sa.func.coalesce(resource_providers.c.root_provider_id, resource_providers.c.id).label(
            "root_id"
        ),
        _modified_at(resource_providers),
    ),
)
INVENTORIES = _make_part(
    parts.INVENTORIES.name,
    inventories.c.resource_provider_id,
    inventories.c.resource_class_id.label("class_id"),
    inventories.c.total,
    inventories.c.reserved,
    inventories.c.min_unit,
    inventories.c.max_unit,
    inventories.c.step_size,
    ExactText(inventories.c.allocation_ratio).label("allocation_ratio"),
    _modified_at(inventories),
)
_usage = _make_part(
    "usage",
    allocations.c.resource_provider_id,
    allocations.c.resource_class_id.label("class_id"),
    sa.cast(sa.func.sum(allocations.c.used), sa.BigInteger).label("used"),
)
USAGE = LoadedPart(
    _usage.name,
    _usage.provider_id,
    _usage.query.group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id),
)
CONSUMPTION = _make_part(
    "consumption",
    consumption.c.resource_provider_id,
    consumption.c.resource_class_id.label("class_id"),
    consumption.c.consumed_provider_id,
    consumption.c.consumed_class_id,
    consumption.c.amount,
)
TRAITS = _make_part(
    parts.TRAITS.name,
    resource_provider_traits.c.resource_provider_id,
    resource_provider_traits.c.trait_id.label("other"),
)
AGGREGATE_IDS = _make_part(
    parts.AGGREGATES.name,
    resource_provider_aggregates.c.resource_provider_id,
    resource_provider_aggregates.c.aggregate_id.label("other"),
)
AGGREGATES = LoadedPart(
    AGGREGATE_IDS.name,
    AGGREGATE_IDS.provider_id,
    sa.select(AGGREGATE_IDS.provider_id, placement_aggregates.c.uuid.label("other")).join(
        placement_aggregates,
        placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id,
    ),
)
CONDITIONS = _make_part(
    parts.CONDITIONS.name,
    conditions.c.resource_provider_id,
    conditions.c.name,
    conditions.c.effect,
    conditions.c.ends_at,
    conditions.c.on_use,
    conditions.c.began,
    conditions.c.reason,
)
ATTRIBUTES = _make_part(
    parts.ATTRIBUTES.name,
    attributes.c.resource_provider_id,
    attributes.c.name,
    attributes.c.value,
)


def make_condition(values: Iterable[Any]) -> Condition:
    """Return the condition of a row without its provider; booleans of a driver may be numbers."""
    key, effect, ends_at, on_use, began, reason = values
    return Condition(
        key, Effect(effect), as_datetime(ends_at), bool(on_use), bool(began), json.loads(reason)
    )


def read_condition(row: Any) -> Condition:
    """Return the condition of a row of its table."""
    return make_condition((row.name, row.effect, row.ends_at, row.on_use, row.began, row.reason))


def attribute_value(text: str) -> AttributeValue | None:
    """Return the value of a text; None if another program wrote an invalid text."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if is_attribute_value(value) else None


def make_attributes(rows: Iterable[tuple[str, str]]) -> Attributes:
    """Return the attributes of names and texts; skip invalid ones."""
    values = {name: attribute_value(text) for name, text in rows if is_attribute_name(name)}
    return {name: value for name, value in values.items() if value is not None}
