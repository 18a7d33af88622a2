# SPDX-License-Identifier: Apache-2.0
"""Prunes the change feed, in transactions that hold no lock for long.

Old rows of the feed are deleted; `pruned_to` of their stream records up to which position. A
stream that nobody has used for as long is removed in two steps, so that readers that keep up miss
nothing:

1. It is closed: its position is raised once more, so that its owner, if it is alive, cannot
   advance it and takes another stream. Each transaction that closes streams inserts an *epoch*: a
   row among the streams with an identity and the next number.
2. After the same time again it is removed, and with it the epochs before the one in which it was
   closed.

So while an epoch exists, only streams were removed that were closed in it or before; and a reader
that has seen the epoch has seen the ends of those streams. See decision 0011.
"""

from datetime import datetime

import sqlalchemy as sa

from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, chunks
from treeclaim.store.feed.streams import new_identity
from treeclaim.store.schema.tables import NEVER_UNUSED, feed, streams

ROWS_PER_TRANSACTION = 1000
"""Rows of the feed deleted in one transaction, and the rest of the last commit among them. A commit
of the stream's owner waits meanwhile: some ten milliseconds."""


def streams_with_rows(transaction: ReadTransaction) -> list[int]:
    """Return the ids of the streams that have rows in the feed.

    One index lookup finds each, so the size of the feed does not matter.
    """
    found: list[int] = []
    least = sa.select(sa.func.min(feed.c.stream_id))
    stream_id = transaction.scalar(least)
    while stream_id is not None:
        found.append(stream_id)
        stream_id = transaction.scalar(least.where(feed.c.stream_id > stream_id))
    return found


def delete_oldest(transaction: WriteTransaction, stream_id: int, before: datetime) -> int:
    """Delete a stream's oldest rows from before a time; return how many.

    Fewer than `ROWS_PER_TRANSACTION` means that none are left.
    """
    oldest = (
        sa.select(feed.c.position, feed.c.created_at)
        .where(feed.c.stream_id == stream_id)
        .order_by(feed.c.position)
        .limit(ROWS_PER_TRANSACTION)
    )
    old = [row.position for row in transaction.rows(oldest) if row.created_at < before]
    if not old:
        return 0
    transaction.execute(
        sa.update(streams)
        .where(streams.c.id == stream_id, streams.c.pruned_to < old[-1])
        .values(pruned_to=old[-1])
    )
    return transaction.execute(
        sa.delete(feed).where(feed.c.stream_id == stream_id, feed.c.position <= old[-1])
    ).rowcount


def remove_closed(transaction: WriteTransaction, before: datetime) -> None:
    """Remove the streams that were closed before a time, and the epochs before theirs."""
    newest = transaction.scalar(
        sa.select(sa.func.max(streams.c.closed_in)).where(streams.c.used_at < before)
    )
    if newest is None:
        return
    # By id: a condition on other columns would wait for the rows of streams in use.
    gone = sa.select(streams.c.id).where(
        sa.or_(streams.c.closed_in <= newest, streams.c.epoch < newest)
    )
    for ids in chunks([row.id for row in transaction.rows(gone)]):
        # A clock that jumped may have left rows; the next stream with such an id must not have them.
        transaction.execute(sa.delete(feed).where(feed.c.stream_id.in_(ids)))
        transaction.execute(sa.delete(streams).where(streams.c.id.in_(ids)))


def close_unused(transaction: WriteTransaction, before: datetime) -> None:
    """Close the streams that nobody has used since a time, in an epoch of their own.

    Two concurrent prunings would insert the same epoch. Its number is unique, so the second one
    runs again.
    """
    newest = transaction.scalar(sa.select(sa.func.max(streams.c.epoch)))
    unused = sa.and_(
        streams.c.epoch.is_(None), streams.c.closed_in.is_(None), streams.c.used_at < before
    )
    unused_ids = [row.id for row in transaction.rows(sa.select(streams.c.id).where(unused))]
    if newest is not None and not unused_ids:
        return
    number = 0 if newest is None else newest + 1
    transaction.execute(
        sa.insert(streams).values(
            identity=new_identity(), position=0, pruned_to=0, used_at=NEVER_UNUSED, epoch=number
        )
    )
    for ids in chunks(unused_ids):
        # The condition again: the owner may have used it since.
        transaction.execute(
            sa.update(streams)
            .where(streams.c.id.in_(ids), unused)
            .values(position=streams.c.position + 1, closed_in=number, used_at=transaction.now)
        )
