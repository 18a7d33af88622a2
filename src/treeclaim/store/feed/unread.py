# SPDX-License-Identifier: Apache-2.0
"""Loads the changes since a cursor in one snapshot, or everything if the feed does not have them.

A snapshot of MariaDB may lack a commit and show a later commit of the same shard. A reader therefore applies changes
only if the feed rows after its cursor are complete. It applies a load of everything only if the feed rows after the
*floor* are complete, a cursor that an earlier statement has read. Otherwise the transaction runs again.
"""

from treeclaim.model.changes import Changes, Cursor
from treeclaim.store.database.transactions import IncompleteViewError, ReadTransaction
from treeclaim.store.feed.rows import FeedDelta, FeedRow
from treeclaim.store.feed.shards import (
    Shard,
    has_all,
    load_chains,
    load_feed_rows,
    load_shards,
    make_chains,
    make_cursor,
)
from treeclaim.store.reading.providers.records import load_catalogue, load_providers

_ROWS = f"SELECT {', '.join(FeedRow._fields)} FROM treeclaim_feed"
_COUNT_PROVIDERS = "SELECT COUNT(*) FROM resource_providers"

_FEW_ITEMS = 1_000
_COUNT_SHARE = 2
_LOAD_SHARE = 6
"""A load of everything takes 7 µs for each provider: a sixth of a load by id (43 µs), and half of the time to count a
commit. For more than `_FEW_ITEMS` commits or providers, a reader therefore compares the costs."""


def load_changes(transaction: ReadTransaction, cursor: Cursor | None) -> Changes:
    """Load the changes committed since a cursor, or everything if the feed does not have them.

    Raises:
        IncompleteViewError: if the snapshot is not usable.
    """
    shards = load_shards(transaction)
    delta = None if cursor is None else _load_delta(transaction, cursor, shards)
    if delta is None or _is_load_cheaper(transaction, len(delta.provider_ids), _LOAD_SHARE):
        return _load_everything(transaction, shards)
    records = load_providers(transaction, delta.provider_ids)
    catalogue = load_catalogue(transaction) if delta.has_catalogue else None
    return delta.to_changes(make_cursor(shards), records, catalogue)


def _load_delta(
    transaction: ReadTransaction, cursor: Cursor, shards: list[Shard]
) -> FeedDelta | None:
    """Return the sum of the rows after a cursor; None if loading everything is necessary or cheaper."""
    commits = sum(
        max(shard.position - position, 0)
        for shard, position in zip(shards, cursor.positions, strict=False)
    )
    if _is_load_cheaper(transaction, commits, _COUNT_SHARE):
        return None
    rows = load_feed_rows(transaction, cursor, shards, _ROWS)
    if not has_all(transaction, cursor, shards, make_chains(rows)):
        return None
    delta = FeedDelta.of(rows)
    return None if delta.is_unknown else delta


def _is_load_cheaper(transaction: ReadTransaction, number: int, share: int) -> bool:
    """Return whether loading everything is cheaper than a number of items that cost `share` providers each."""
    if number <= _FEW_ITEMS:
        return False
    return share * number > int(transaction.scalar(_COUNT_PROVIDERS))


def _load_everything(transaction: ReadTransaction, shards: list[Shard]) -> Changes:
    floor = transaction.floor
    if floor is None:
        raise IncompleteViewError
    # After a pruning or a restoration of the database, the next attempt has a later floor.
    if not has_all(transaction, floor, shards, load_chains(transaction, floor, shards)):
        raise IncompleteViewError
    # Processes without a Forest save the 14 MB of numpy.
    from treeclaim.store.reading.providers.whole import load_whole_inventory  # noqa: PLC0415

    catalogue = load_catalogue(transaction)
    transaction.extend_timeouts()
    return Changes(
        make_cursor(shards),
        complete=True,
        records=(),
        removed=(),
        catalogue=catalogue,
        whole=load_whole_inventory(transaction),
    )
