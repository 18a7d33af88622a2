# SPDX-License-Identifier: Apache-2.0
"""What is taken out of the change feed, in pieces that hold no lock for long.

Rows of the feed go when they are old; `pruned_to` of their stream says up to where. A stream that
nobody has used for as long is taken away in two steps, so that readers that keep up lose nothing:

1. It is closed: its position is raised once more, so that its owner, should it live, finds it
   elsewhere than it left it and takes another one. Each transaction that closes streams makes an
   *epoch*: a row among the streams with an identity and the next number.
2. When it has been closed for as long, it is removed, and with it the epochs before that in which
   it was closed.

So while an epoch is there, only streams were removed that had been closed when it was made, or
before; and who has seen that epoch has seen those streams' ends. See decision 0011.
"""

from datetime import datetime

import sqlalchemy as sa

from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, chunks
from treeclaim.store.feed.streams import new_identity
from treeclaim.store.schema.tables import NEVER_UNUSED, feed, streams

ROWS_AT_ONCE = 1000
"""Rows of the feed deleted in one transaction, and those of the last commit among them. Meanwhile
the stream's owner waits if it commits: some ten milliseconds."""


def told_streams(transaction: ReadTransaction) -> list[int]:
    """Return the streams that have rows in the feed.

    Each is found by one step in the index, so that the size of the feed does not matter.
    """
    found: list[int] = []
    least = sa.select(sa.func.min(feed.c.stream_id))
    stream_id = transaction.scalar(least)
    while stream_id is not None:
        found.append(stream_id)
        stream_id = transaction.scalar(least.where(feed.c.stream_id > stream_id))
    return found


def delete_oldest(transaction: WriteTransaction, stream_id: int, before: datetime) -> int:
    """Delete a stream's oldest rows from before some time; return how many.

    Less than `ROWS_AT_ONCE` means that no more of them are left.
    """
    oldest = (
        sa.select(feed.c.position, feed.c.created_at)
        .where(feed.c.stream_id == stream_id)
        .order_by(feed.c.position)
        .limit(ROWS_AT_ONCE)
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
    """Remove the streams that were closed before some time, and the epochs older than that."""
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
        # Whatever a leaping clock has left: the next stream with such an id must not find it.
        transaction.execute(sa.delete(feed).where(feed.c.stream_id.in_(ids)))
        transaction.execute(sa.delete(streams).where(streams.c.id.in_(ids)))


def close_unused(transaction: WriteTransaction, before: datetime) -> None:
    """Close the streams that nobody has used since some time, in an epoch of their own.

    Two that do so at once would make the same epoch. Its number is unique, so the second one is
    run again.
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
        # The condition again: an owner may have been quicker.
        transaction.execute(
            sa.update(streams)
            .where(streams.c.id.in_(ids), unused)
            .values(position=streams.c.position + 1, closed_in=number, used_at=transaction.now)
        )
