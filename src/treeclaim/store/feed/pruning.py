# SPDX-License-Identifier: Apache-2.0
"""Prunes the change feed, in transactions that hold no lock for long.

Old rows of the feed are deleted; `pruned_to` of their stream records the last deleted position. An
unused stream is removed in two steps, so that readers that keep up miss no commit:

1. The stream is closed: its position is raised once more, so that its owner, if it is alive, cannot
   advance it and creates another stream. Each transaction that closes streams inserts an *epoch*: a
   row among the streams with an identity and the next number.
2. After the retention time of the feed the closed stream is removed, with the epochs before the one
   in which it was closed.

The time of closing does not affect readers: the next commit of the owner uses another stream, and a
cursor with the open stream stays valid for the retention time, because the stream is removed only
then. Streams are therefore closed early, after an hour without use, or when too many are open; each
stream adds some bytes to the cursors of readers.

While an epoch exists, all removed streams were closed in it or before. A reader that has read the
epoch has therefore read the ends of these streams. See decision 0002.
"""

from datetime import datetime, timedelta

import sqlalchemy as sa

from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, chunks
from treeclaim.store.schema.tables import NEVER_UNUSED, feed, new_identity, streams

ROWS_PER_TRANSACTION = 1000
"""Rows of the feed deleted in one transaction, with the remaining rows of the last commit among them. A
commit of the stream's owner waits for about ten milliseconds."""


CLOSE_AFTER = timedelta(hours=1)
"""Time without use after which a stream is closed: its process has ended, or a peak is over."""

MOST_OPEN = 300
"""Streams that a pruning leaves open: two for each of 150 workers. A live owner of a closed stream
creates another one, which costs its transaction one more statement. The cursors of clients have room for
as many streams (see `treeclaim.model.extension.cursor_text`)."""


def find_streams_with_rows(transaction: ReadTransaction) -> list[int]:
    """Return the ids of the streams that have rows in the feed, by one index lookup for each stream."""
    has_rows = sa.exists().where(feed.c.stream_id == streams.c.id)
    return [row.id for row in transaction.rows(sa.select(streams.c.id).where(has_rows))]


def delete_oldest(transaction: WriteTransaction, stream_id: int, before: datetime) -> int:
    """Delete a stream's oldest rows from before a time; return how many.

    After fewer than `ROWS_PER_TRANSACTION`, no older rows remain.
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
    # Deleted by id: a condition on other columns would wait for the rows of streams in use.
    gone = sa.select(streams.c.id).where(
        sa.or_(streams.c.closed_in <= newest, streams.c.epoch < newest)
    )
    for ids in chunks([row.id for row in transaction.rows(gone)]):
        # A clock that jumped may have left rows, which must not belong to the next stream with this id.
        transaction.execute(sa.delete(feed).where(feed.c.stream_id.in_(ids)))
        transaction.execute(sa.delete(streams).where(streams.c.id.in_(ids)))


def close_unused(transaction: WriteTransaction, before: datetime) -> None:
    """Close, in a new epoch, the streams without use since a time, and the least recently used beyond `MOST_OPEN`.

    Two concurrent prunings insert the same epoch. Its number is unique, so the second one runs again.
    """
    newest = transaction.scalar(sa.select(sa.func.max(streams.c.epoch)))
    is_open = sa.and_(streams.c.epoch.is_(None), streams.c.closed_in.is_(None))
    by_use = sa.select(streams.c.id, streams.c.used_at).where(is_open)
    rows = transaction.rows(by_use.order_by(streams.c.used_at.desc(), streams.c.id.desc()))
    unused = [
        row for number, row in enumerate(rows) if number >= MOST_OPEN or row.used_at < before
    ]
    if newest is not None and not unused:
        return
    number = 0 if newest is None else newest + 1
    transaction.execute(
        sa.insert(streams).values(
            identity=new_identity(), position=0, pruned_to=0, used_at=NEVER_UNUSED, epoch=number
        )
    )
    last_use = max((row.used_at for row in unused), default=before)
    for ids in chunks([row.id for row in unused]):
        # Its owner may have used a stream since, or another pruning may have closed it.
        transaction.execute(
            sa.update(streams)
            .where(streams.c.id.in_(ids), is_open, streams.c.used_at <= last_use)
            .values(position=streams.c.position + 1, closed_in=number, used_at=transaction.now)
        )
