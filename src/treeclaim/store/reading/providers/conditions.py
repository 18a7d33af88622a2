# SPDX-License-Identifier: Apache-2.0
"""Reads conditions of providers (contract page 102, section 3)."""

import json
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from treeclaim.model.extension.conditions import Condition, Effect
from treeclaim.model.whole import Links
from treeclaim.store.database.transactions import ReadTransaction, as_datetime
from treeclaim.store.schema.tables import conditions

_ALL = sa.select(conditions)


class ConditionRow(NamedTuple):
    """The condition in a row of the table; a driver's booleans may be numbers."""

    name: str
    effect: int
    ends_at: datetime | str | None
    on_use: Any
    began: Any
    reason: str


def condition_of(row: Any) -> Condition:
    """Return the condition of a row of the table, or of a `ConditionRow`."""
    return Condition(
        row.name,
        Effect(row.effect),
        as_datetime(row.ends_at),
        bool(row.on_use),
        bool(row.began),
        json.loads(row.reason),
    )


def all_conditions(transaction: ReadTransaction) -> Links:
    """Load the conditions of all providers; there are few."""
    rows = transaction.rows(_ALL)
    found = [condition_of(row) for row in transaction.watched(rows)]
    numbers = {condition: number for number, condition in enumerate(sorted(set(found)))}
    return Links(
        np.array([row.resource_provider_id for row in rows], dtype=np.int64),
        np.array([numbers[condition] for condition in found], dtype=np.int64),
        {number: condition for condition, number in numbers.items()},
    )
