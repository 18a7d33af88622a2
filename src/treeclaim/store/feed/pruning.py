# SPDX-License-Identifier: Apache-2.0
"""Prunes the change feed, in transactions that hold no lock for long.

Old rows of the feed are deleted; `pruned_to` of their stream records up to which position. A
stream that nobody uses is removed in two steps, so that readers that keep up miss nothing:

1. It is closed: its position is raised once more, so that its owner, if it is alive, cannot
   advance it and takes another stream. Each transaction that closes streams inserts an *epoch*: a
   row among the streams with an identity and the next number.
2. Once it has been closed for as long as rows are kept it is removed, and with it the epochs before
   the one in which it was closed.

When a stream is closed decides nothing about what readers see: its owner's next commit goes to
another stream, and a cursor that names it as open stays good for as long as rows are kept after
that, because only then is it removed. So streams are closed soon, after an hour without use, and
the least recently used ones where too many are open; each costs a reader's cursor some bytes.

So while an epoch exists, only streams were removed that were closed in it or before; and a reader
that has seen the epoch has seen the ends of those streams. See decision 0002.
"""

from datetime import datetime, timedelta

import sqlalchemy as sa

from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, chunks
from treeclaim.store.schema.tables import NEVER_UNUSED, feed, new_identity, streams

ROWS_PER_TRANSACTION = 1000
"""Rows of the feed deleted in one transaction, and the rest of the last commit among them. A commit
of the stream's owner waits meanwhile: some ten milliseconds."""


CLOSE_AFTER = timedelta(hours=1)
"""A stream that was not used for as long is closed: of a process that has ended, or of a peak."""

MOST_OPEN = 300
"""Streams that a pruning leaves open: two for each of 150 workers. Their owners may be alive; one that
needs its stream again takes another one, which costs its transaction one statement more. What clients
have of a cursor has room for as many (see `treeclaim.model.extension.cursor_text`)."""


def streams_with_rows(transaction: ReadTransaction) -> list[int]:
    """Return the ids of the streams that have rows in the feed.

    One index lookup finds each, so the size of the feed does not matter.
    """
    stream_ids: list[int] = []
    least = sa.select(sa.func.min(feed.c.stream_id))
    stream_id = transaction.scalar(least)
    while stream_id is not None:
        stream_ids.append(stream_id)
        stream_id = transaction.scalar(least.where(feed.c.stream_id > stream_id))
    return stream_ids


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
        # A clock that jumped may have left rows; the next stream with this id must not get them.
        transaction.execute(sa.delete(feed).where(feed.c.stream_id.in_(ids)))
        transaction.execute(sa.delete(streams).where(streams.c.id.in_(ids)))


def close_unused(transaction: WriteTransaction, before: datetime) -> None:
    """Close the streams that nobody has used since a time, and the least used of too many.

    They are closed in an epoch of their own.

    Two concurrent prunings would insert the same epoch. Its number is unique, so the second one
    runs again.
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
        # The owner may have used it since, or another pruning have closed it.
        transaction.execute(
            sa.update(streams)
            .where(streams.c.id.in_(ids), is_open, streams.c.used_at <= last_use)
            .values(position=streams.c.position + 1, closed_in=number, used_at=transaction.now)
        )
