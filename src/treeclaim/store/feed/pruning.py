# SPDX-License-Identifier: Apache-2.0
"""Prunes the feed, and resets it after changes that are not in it."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction
from treeclaim.store.feed.shards import SELECT_SHARDS
from treeclaim.store.schema.tables import SHARDS, feed, feed_shards, new_shard

ROWS_PER_TRANSACTION = 1000
"""Feed rows that one transaction prunes, with the remaining rows of the last commit among them."""


def find_shards_with_rows(transaction: ReadTransaction) -> list[int]:
    """Return the shards that have rows in the feed, by one index lookup for each."""
    has_rows = sa.exists().where(feed.c.shard == feed_shards.c.shard)
    return [row.shard for row in transaction.rows(sa.select(feed_shards.c.shard).where(has_rows))]


def delete_oldest(transaction: WriteTransaction, shard: int, before: datetime) -> int:
    """Delete a shard's oldest feed rows from before a time; return how many.

    After fewer than `ROWS_PER_TRANSACTION`, no older rows remain. The lock of the shard comes last, so
    that writers wait for a COMMIT only.
    """
    oldest = (
        sa.select(feed.c.position, feed.c.created_at)
        .where(feed.c.shard == shard)
        .order_by(feed.c.position)
        .limit(ROWS_PER_TRANSACTION)
    )
    old = [row.position for row in transaction.rows(oldest) if row.created_at < before]
    if not old:
        return 0
    deleted: int = transaction.execute(
        sa.delete(feed).where(feed.c.shard == shard, feed.c.position <= old[-1])
    ).rowcount
    transaction.execute(
        sa.update(feed_shards)
        .where(feed_shards.c.shard == shard, feed_shards.c.pruned_to < old[-1])
        .values(pruned_to=old[-1])
    )
    return deleted


def reset(connection: Connection) -> None:
    """Give all shards new tokens and no readable past, so that each reader loads everything.

    For changes that are not in the feed. It creates missing shards, and ends every fence.
    """
    positions = dict.fromkeys(range(SHARDS), 0)
    locked = connection.execute(
        SELECT_SHARDS.order_by(feed_shards.c.shard).with_for_update()
    ).all()
    positions |= {row.shard: row.position for row in locked}
    newest = sa.select(feed.c.shard, sa.func.max(feed.c.position).label("position"))
    for row in connection.execute(newest.group_by(feed.c.shard)).all():
        positions[row.shard] = max(positions[row.shard], row.position)
    connection.execute(sa.delete(feed_shards))
    new_shards = [new_shard(number, position) for number, position in positions.items()]
    connection.execute(sa.insert(feed_shards), new_shards)
