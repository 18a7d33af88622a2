# SPDX-License-Identifier: Apache-2.0
"""Rows of the feed, and what they add up to: which providers to load, and what a reader can count by itself.

**Counting.** A claim's row says by how much it changed usage and generation of a provider. A reader
adds that to what it knows, without looking at the provider. The result is what a load of
everything in the same snapshot would show:

1. *Each change is counted once.* A stream's position and its rows are committed together, and the
   rows that are read are those between two positions of one snapshot each. A transaction is in the
   earlier snapshot, and so in what was known, or its rows are among those that are read now.
2. *Usage.* The usage of a class on a provider is the sum over its allocations. A transaction records
   the difference that it made to that sum: it knows exactly which rows it inserted and deleted, as
   it had locked the consumer and counted the deleted rows. So usage is the sum of what all
   transactions of a snapshot recorded, and a sum does not depend on the order of its terms: the rows of
   several streams may come in any order.
3. *Generation.* A transaction that raises the generation of a provider has locked its row, and records by how
   much and to what. So a provider's raises are totally ordered by the generation they end with; the
   greatest one recorded is the present one, and its time is that of the provider's last change. A release
   raises nothing, and leaves both as they were.
4. *Everything else*, such as the shape of a tree, inventories and names, is recorded by naming the provider,
   which is then loaded in the snapshot of the positions; so the amounts for it in the same rows are
   loaded already, and are not counted. The same is true of a transaction that claims and also
   changes a provider otherwise.
5. *What does not exist.* A change of a class of which a provider has no inventory, or of a provider
   that is gone, is old data: nobody sees its usage. If there is an inventory later, the provider is
   named, and loaded.

Whether (3) is so can be checked: what was known plus all steps must be the greatest generation recorded.
If it is not, somebody has written beside the feed, and the reader loads everything.

**Amounts.** How much a claim changed is text in the column `amounts`, a JSON list of integers: by how much the
generation was raised, and to what; then each class and by how much its usage rose. If there is no text, a reader
loads the provider. The time is in the row: `created_at` is what `updated_at` of the provider was set to,
rounded by the database in the same way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import orjson

from treeclaim.model.changes import UsageChange
from treeclaim.store.database.transactions import seconds
from treeclaim.store.schema.tables import LONGEST_AMOUNTS

PROVIDER = "provider"
CATALOGUE = "catalogue"

FORMAT = 1
"""The format of the rows that this release writes. A reader that meets another one loads everything."""

_seconds = lru_cache(maxsize=16)(seconds)
"""All rows of a commit have one time, and a commit may have thousands."""


class FeedRow(NamedTuple):
    """A row of the feed, as far as a Forest needs it."""

    kind: str
    stream_id: int
    object_id: int
    position: int
    format: int
    amounts: str | None
    created_at: datetime | str


@dataclass(frozen=True, slots=True)
class FeedDelta:
    """The sum of rows.

    Attributes:
        provider_ids: Providers to load.
        usage: What claims changed of others, by provider id.
        catalogue: Whether traits and resource classes are to be loaded.
        is_unknown: Whether a row has another format, so that all is to be loaded.
    """

    provider_ids: frozenset[int]
    usage: Mapping[int, UsageChange]
    catalogue: bool
    is_unknown: bool

    @classmethod
    def of(cls, rows: Iterable[FeedRow]) -> "FeedDelta":
        """Add up some rows."""
        provider_ids: set[int] = set()
        usage: dict[int, UsageChange] = {}
        catalogue = unknown = False
        for row in rows:
            unknown = unknown or row.format != FORMAT
            catalogue = catalogue or row.kind == CATALOGUE
            if row.kind != PROVIDER or row.object_id in provider_ids:
                continue
            change = change_in(row.amounts, row.created_at)
            if change is None:
                provider_ids.add(row.object_id)
                usage.pop(row.object_id, None)
                continue
            earlier = usage.get(row.object_id)
            usage[row.object_id] = change if earlier is None else earlier.and_also(change)
        return cls(frozenset(provider_ids), usage, catalogue, unknown)


def amounts_text(change: UsageChange | None) -> str | None:
    """Return a change as text; None if readers are to load the provider instead.

    So they do where very many classes changed, as their text would not fit.
    """
    if change is None:
        return None
    numbers = [change.steps, change.generation]
    for class_id, amount in change.used.items():
        if amount:
            numbers += class_id, amount
    text = orjson.dumps(numbers).decode()
    return text if len(text) <= LONGEST_AMOUNTS else None


def change_in(text: str | None, at: datetime | str) -> UsageChange | None:
    """Return the change that a text tells; None if the provider is to be loaded.

    Args:
        text: The text of the column; None where it is NULL.
        at: `created_at` of the row, as a driver gives it.
    """
    if text is None:
        return None
    steps, generation, *used = orjson.loads(text)
    amounts = dict(zip(used[::2], used[1::2], strict=True))
    return UsageChange(amounts, steps, generation, _seconds(at))
