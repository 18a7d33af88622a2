# SPDX-License-Identifier: Apache-2.0
"""Polls the feed by one statement, which usually returns all new changes.

The statement reads all shards and the feed rows after the reader's cursor in one view. If the rows name a few
providers to load, a second statement loads these and the shards; its result is valid if the shards are unchanged.
In all other cases the reader loads in a snapshot (`unread.py`): after a change of the catalogue or of many
providers, a pruning, a restored database, or a commit of many rows.

On SQLite, a change number shows in 3 µs that nothing was committed since the last poll.
"""

from collections.abc import Sequence

from sqlalchemy.engine import Dialect

from treeclaim.model.changes import Changes, Cursor
from treeclaim.model.provider import ProviderRecord
from treeclaim.store.database.compiled import compile_text
from treeclaim.store.feed.probe import Probe
from treeclaim.store.feed.rows import FeedDelta, FeedRow
from treeclaim.store.feed.shards import (
    UNREAD,
    FeedState,
    compare,
    make_chains,
    make_cursor,
    make_shards,
)
from treeclaim.store.reading.providers.json_columns import as_rows, group_rows
from treeclaim.store.reading.providers.records import SELECT_PARTS, make_records
from treeclaim.store.schema.tables import SHARDS

_SHARD = "shard"
"""The first column of the rows that are shards; feed rows have their kind there."""

_MOST_ROWS = 1000
"""Rows that one poll reads: some hundred kilobytes."""

_SHARDS_SQL = "SELECT 'shard', shard, position, token, pruned_to{} FROM treeclaim_feed_shards"
_POLL = f"""
{_SHARDS_SQL.format(", NULL, NULL, NULL")}
UNION ALL SELECT * FROM (
SELECT kind, shard, position, previous, object_id, format, amounts, created_at
FROM treeclaim_feed WHERE {UNREAD} LIMIT :most) unread
"""

_SHARDS = "shards"
_SHARD_COLUMNS = {name: name for name in ("shard", "position", "token", "pruned_to")}
_LOAD = compile_text(
    f"{SELECT_PARTS} UNION ALL {as_rows(_SHARDS, _SHARD_COLUMNS, 'FROM treeclaim_feed_shards')}"
)
"""Loads providers and all shards in one view."""

_MOST_PROVIDERS = 64
"""Providers that one statement loads while other threads wait for the connection; about one tree."""


class LoadRequiredError(Exception):
    """The poll did not return all new changes; the reader must load them in a snapshot."""


class FeedPoller:
    """Polls the feed for the readers of one process; thread-safe."""

    def __init__(self, probe: Probe, dialect: Dialect) -> None:
        self._probe = probe
        self._dialect = dialect
        self._last_poll: tuple[tuple[int, int] | None, Cursor | None] = (None, None)
        """The version of the database before the last poll, and the cursor at its end."""

    def read_end(self) -> Cursor:
        """Return the end of the feed; a later transaction sees all commits up to it.

        Raises:
            StoreUnavailableError: if the database does not respond.
        """
        rows = self._probe.fetch_rows(_SHARDS_SQL.format(""))
        return make_cursor(make_shards(row[1:] for row in rows))

    def poll(self, cursor: Cursor) -> Changes | None:
        """Return the changes committed since a cursor; None without any commit.

        Raises:
            LoadRequiredError: if the changes must be loaded in a snapshot.
            StoreUnavailableError: if the database does not respond.
        """
        # Read before the query, so that a commit after it changes the version, even if the query sees the commit.
        version = self._probe.read_version()
        if version is not None and self._last_poll == (version, cursor):
            return None
        if len(cursor.positions) != SHARDS:
            raise LoadRequiredError
        positions = {f"at_{shard}": position for shard, position in enumerate(cursor.positions)}
        poll = compile_text(_POLL).bind(self._dialect, positions | {"most": _MOST_ROWS + 1})
        rows = self._probe.fetch_rows(poll.sql, poll.parameters)
        shards = make_shards(row[1:5] for row in rows if row[0] == _SHARD)
        end = make_cursor(shards)
        self._last_poll = version, end
        feed_rows = [FeedRow(*row) for row in rows if row[0] != _SHARD]
        state = compare(cursor, shards, make_chains(feed_rows))
        if state is FeedState.CURRENT:
            return None
        if state is FeedState.NEWS and len(feed_rows) <= _MOST_ROWS:
            return self._load(end, FeedDelta.of(feed_rows))
        raise LoadRequiredError

    def _load(self, end: Cursor, delta: FeedDelta) -> Changes:
        """Load the providers of a delta.

        Raises:
            LoadRequiredError: if they are too many, or another transaction was committed meanwhile.
            StoreUnavailableError: if the database does not respond.
        """
        records: Sequence[ProviderRecord] = ()
        if delta.is_unknown or delta.has_catalogue or len(delta.provider_ids) > _MOST_PROVIDERS:
            raise LoadRequiredError
        if delta.provider_ids:
            load = _LOAD.bind(self._dialect, {"ids": sorted(delta.provider_ids)})
            rows = self._probe.fetch_rows(load.sql, load.parameters)
            rows_by_kind = group_rows(rows)
            if make_cursor(make_shards(rows_by_kind[_SHARDS])) != end:
                raise LoadRequiredError
            records = make_records(rows_by_kind)
        return delta.to_changes(end, records)
