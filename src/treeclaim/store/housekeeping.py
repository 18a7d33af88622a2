# SPDX-License-Identifier: Apache-2.0
"""Removes expired holds (contract page 100, section 3) and conditions (page 102, section 3), and prunes the feed.

Every process does so in threads, by the clock of the database.
"""

import logging
import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from treeclaim.model.claim import HOLD_TYPE
from treeclaim.model.errors import TreeclaimError
from treeclaim.store.database.transactions import WriteTransaction, as_datetime
from treeclaim.store.operations.allocations import holds as hold_writes
from treeclaim.store.operations.allocations import kept_requests
from treeclaim.store.operations.providers import conditions as condition_writes
from treeclaim.store.schema.tables import SHARDS

if TYPE_CHECKING:
    from treeclaim.store.store import Store

_LOG = logging.getLogger(__name__)

FEED_RETENTION = timedelta(hours=25)
"""Age of the oldest rows in the feed; a reader that is further behind loads everything. Cursors of clients are
valid for 24 hours (contract page 99, section 4); the additional hour covers clock differences and long
transactions."""

_PRUNE_INTERVAL = 3600.0
"""Seconds between two prunings by a process: some thousand rows each in a busy cloud."""

_FIRST_PRUNING = 60.0
"""Seconds until the first pruning by a process, which may live for less than an hour."""

_CHECK_SECONDS = 0.4
"""Seconds between two checks, each an indexed query. A hold ends at least one second after its write, so a check
sees it before its end."""

_RECHECK_SECONDS = 0.01
"""Seconds between a removal and the next check, because a removal may leave expired holds."""

_ENDS_PER_CHECK = 100
"""Maximum holds, and conditions, that a check removes."""

_ROWS_PER_TRANSACTION = 1000
"""Maximum feed rows that a transaction prunes."""

_SELECT_OLDEST = """
SELECT position, created_at FROM treeclaim_feed WHERE shard = :shard
ORDER BY position LIMIT :most
"""
_DELETE = "DELETE FROM treeclaim_feed WHERE shard = :shard AND position <= :last"
_SET_PRUNED = """
UPDATE treeclaim_feed_shards SET pruned_to = :last WHERE shard = :shard AND pruned_to < :last
"""

_NO_PROVIDER = 0
"""Provider id in a row of a hold."""

_NEXT_ENDS = f"""
SELECT * FROM (
SELECT treeclaim_holds.uuid, treeclaim_holds.ends_at, {_NO_PROVIDER} FROM treeclaim_holds
JOIN consumers ON consumers.uuid = treeclaim_holds.uuid
JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id
WHERE treeclaim_holds.ends_at IS NOT NULL AND consumer_types.name = '{HOLD_TYPE}'
ORDER BY treeclaim_holds.ends_at LIMIT {_ENDS_PER_CHECK}
) of_holds UNION ALL SELECT * FROM (
SELECT name, ends_at, resource_provider_id FROM treeclaim_conditions WHERE ends_at IS NOT NULL
ORDER BY ends_at LIMIT {_ENDS_PER_CHECK}
) of_conditions
"""
"""SQL of any database for the next ends: UUID of a hold, or key of a condition; time; provider id of a condition."""


class Housekeeper:
    """Removes expired rows from the database; `closing` ends a pruning when set."""

    def __init__(self, store: "Store", closing: threading.Event) -> None:
        self._store = store
        self._closing = closing

    def start(self) -> None:
        """Start the threads of this process."""
        self._store.repeat("treeclaim-holds", 0.0, self._end_if_due)
        self._store.repeat("treeclaim-pruning", _FIRST_PRUNING, self.prune_in_background)

    def _end_if_due(self) -> float:
        try:
            return _RECHECK_SECONDS if self.end_expired() else _CHECK_SECONDS
        except TreeclaimError as error:
            # The log has the cause already.
            _LOG.debug("Holds were not checked for their ends: %s", error)
            return _CHECK_SECONDS

    def end_expired(self) -> bool:
        """Remove expired holds and conditions; return whether any were expired; raise as `Store.write`."""
        rows = self._store.fetch(_NEXT_ENDS)
        if not rows:
            return False
        now = self._store.read_clock()
        expired_rows = [
            (provider_id, name)
            for name, ends_at, provider_id in rows
            if (as_datetime(ends_at) or now) <= now
        ]
        holds = [uuid for provider_id, uuid in expired_rows if provider_id == _NO_PROVIDER]
        conditions = [condition for condition in expired_rows if condition[0] != _NO_PROVIDER]
        if holds:
            self._store.write(hold_writes.end_expired, holds)
        if conditions:
            self._store.write(condition_writes.end_expired, conditions)
        return bool(expired_rows)

    def prune(self, keep: timedelta) -> int:
        """Delete rows of the change feed older than `keep`, and kept requests; return the number of feed rows.

        It uses many short transactions, so that no writer waits for long. If it raises as `Store.write`, earlier
        transactions stay committed.
        """
        cutoff = self._store.read_clock() - keep
        deleted_count = 0
        for shard in range(SHARDS):
            batch = _ROWS_PER_TRANSACTION
            while batch >= _ROWS_PER_TRANSACTION and not self._closing.is_set():
                batch = self._store.write(delete_oldest, shard, cutoff)
                deleted_count += batch
        while not self._closing.is_set() and (
            uuids := self._store.read(kept_requests.find_without_record)
        ):
            self._store.write(kept_requests.mark_without_record, uuids)
        self._store.write(kept_requests.delete_old)
        return deleted_count

    def prune_in_background(self) -> float:
        """Prune the feed, or log the failure; return the seconds until the next pruning."""
        try:
            self.prune(FEED_RETENTION)
        except (TreeclaimError, SQLAlchemyError) as error:
            # The log has the cause already.
            _LOG.warning("The change feed was not pruned: %s", error)
        return _PRUNE_INTERVAL


def delete_oldest(transaction: WriteTransaction, shard: int, cutoff: datetime) -> int:
    """Delete the oldest feed rows of a shard from before a time; return their number.

    If it is below `_ROWS_PER_TRANSACTION`, no older rows remain. The lock of the shard comes last, so that writers
    wait for a COMMIT only.
    """
    rows = transaction.rows(_SELECT_OLDEST, shard=shard, most=_ROWS_PER_TRANSACTION)
    old_positions = [
        row.position for row in rows if (as_datetime(row.created_at) or cutoff) < cutoff
    ]
    if not old_positions:
        return 0
    deleted_count: int = transaction.execute(_DELETE, shard=shard, last=old_positions[-1]).rowcount
    transaction.execute(_SET_PRUNED, shard=shard, last=old_positions[-1])
    return deleted_count
