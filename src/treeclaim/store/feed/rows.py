# SPDX-License-Identifier: Apache-2.0
"""Rows of the feed, and their sum: the providers to load, and the changes of usage to add.

**Counting.** The row of a claim has its change of usage and generation of a provider. A reader adds this change
to its amounts without loading the provider. The result equals a load of everything in the same snapshot:

1. *Each change is counted once.* The position of a shard and its rows are committed together, and a reader reads
   all rows between the positions of two views. A transaction is either in the earlier view, or in these rows.
2. *Usage* of a class on a provider is the sum of its allocations. A transaction has locked the consumer and counted
   the deleted rows, so it records the exact difference of this sum. The differences may be added in any order.
3. *Generation.* A transaction that raises the generation of a provider has locked its row, and records the step and
   the new generation. The greatest recorded generation is therefore the present one, and its time is that of the
   provider's last change. A release raises no generation.
4. *Other changes*, such as those of tree, inventories and names, are recorded by the id of the provider, even if the
   transaction also has claims. A reader loads the provider in the view of the positions, and ignores the amounts
   for it in the same rows.
5. *Missing rows.* A change of a class without an inventory, or of a deleted provider, comes from old data and has no
   visible usage. If an inventory is created later, the provider is loaded.

A reader checks (3): its generation plus all steps must equal the greatest recorded generation. Otherwise another
program has written without the feed, and the reader loads everything.

**Amounts.** The column `amounts` is a JSON list of integers: the step and the new value of the generation, then each
class and the increase of its usage. If it is NULL, a reader loads the provider. The time of the change is
`created_at`, which equals `updated_at` of the provider, rounded by the database in the same way.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import orjson

from treeclaim.model.changes import Catalogue, Changes, Cursor, UsageChange
from treeclaim.model.provider import ProviderRecord
from treeclaim.store.database.transactions import to_timestamp
from treeclaim.store.schema.tables import LONGEST_AMOUNTS

PROVIDER = "provider"
CATALOGUE = "catalogue"
NOTHING = "nothing"
"""A commit without changes for a Forest; only Galera needs its row."""

FORMAT = 1
"""The format of rows that this release writes. A reader that finds another format loads everything."""

_to_timestamp = lru_cache(maxsize=16)(to_timestamp)
"""Cached, because all rows of a commit have the same time, and a commit may have thousands of rows."""


class FeedRow(NamedTuple):
    """The columns of a feed row that a Forest needs."""

    kind: str
    shard: int
    position: int
    previous: int
    object_id: int
    format: int
    amounts: str | None
    created_at: datetime | str


@dataclass(frozen=True, slots=True)
class FeedDelta:
    """The sum of rows.

    Attributes:
        provider_ids: Providers to load.
        usage: Changes of other providers by claims, by provider id.
        has_catalogue: Whether to load traits and resource classes.
        is_unknown: Whether a row has another format, so that everything must be loaded.
    """

    provider_ids: frozenset[int]
    usage: Mapping[int, UsageChange]
    has_catalogue: bool
    is_unknown: bool

    @classmethod
    def of(cls, rows: Iterable[FeedRow]) -> "FeedDelta":
        """Sum up rows."""
        provider_ids: set[int] = set()
        usage: dict[int, UsageChange] = {}
        has_catalogue = is_unknown = False
        for row in rows:
            is_unknown = is_unknown or row.format != FORMAT
            has_catalogue = has_catalogue or row.kind == CATALOGUE
            if row.kind != PROVIDER or row.object_id in provider_ids:
                continue
            change = read_amounts(row.amounts, row.created_at)
            if change is None:
                provider_ids.add(row.object_id)
                usage.pop(row.object_id, None)
                continue
            earlier_change = usage.get(row.object_id)
            usage[row.object_id] = (
                change if earlier_change is None else earlier_change.plus(change)
            )
        return cls(frozenset(provider_ids), usage, has_catalogue, is_unknown)

    def to_changes(
        self,
        cursor: Cursor,
        records: Sequence[ProviderRecord],
        catalogue: Catalogue | None = None,
    ) -> Changes:
        """Return the changes up to a cursor, given the records of the providers to load that exist."""
        return Changes(
            cursor,
            complete=False,
            records=records,
            removed=sorted(self.provider_ids - {record.id for record in records}),
            catalogue=catalogue,
            usage=self.usage,
        )


def write_amounts(change: UsageChange | None) -> str | None:
    """Return the `amounts` of a change; None without a change, or for too long a text."""
    if change is None:
        return None
    numbers = [change.steps, change.generation]
    for class_id, amount in change.used.items():
        if amount:
            numbers += class_id, amount
    text = orjson.dumps(numbers).decode()
    return text if len(text) <= LONGEST_AMOUNTS else None


def read_amounts(text: str | None, created_at: datetime | str) -> UsageChange | None:
    """Return the change of the `amounts` and time of a row; None if the provider must be loaded."""
    if text is None:
        return None
    steps, generation, *class_amounts = orjson.loads(text)
    amounts = dict(zip(class_amounts[::2], class_amounts[1::2], strict=True))
    return UsageChange(amounts, steps, generation, _to_timestamp(created_at))
