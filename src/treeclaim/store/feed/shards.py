# SPDX-License-Identifier: Apache-2.0
"""The change feed's eight shards: chains of commits (decision 0002). Each write extends one of them.

A shard is a row with the position and the random token of its last commit. The last statements of a write advance
one shard and insert the write's feed rows, each with the token before it. The shard's row stays locked until the
transaction ends, so its positions have no gaps and no repetitions. A reader compares its eight positions and tokens
with those of the shards.

A read view of MariaDB is not atomic: it may show position k + 1 without k. A reader therefore uses rows only if all
positions after its own are present.
"""

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from math import ceil
from time import monotonic
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from treeclaim.model.changes import Cursor, ProviderEffect
from treeclaim.model.parts import EVERYTHING
from treeclaim.store.database.systems import get_galera_node, get_system
from treeclaim.store.database.transactions import (
    ROWS_PER_STATEMENT,
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.feed.rows import CATALOGUE, FORMAT, NOTHING, PROVIDER, write_amounts
from treeclaim.store.schema.tables import SHARDS, draw_token, feed, feed_shards, make_shard

LOCK_SECONDS = 0.5
"""Seconds that a write waits for its shard; whole seconds on MariaDB. The row is locked for one COMMIT at a time, so
after a longer wait its owner has stopped, and the write runs again with another shard."""

_AVOID_SECONDS = 10.0
"""Seconds for which a process avoids such a shard; by default, the server ends idle transactions after this time."""

_ADVANCE = """
UPDATE treeclaim_feed_shards SET previous = token, token = :token, position = position + 1
WHERE shard = :shard
"""
"""`previous` comes first, because MariaDB assigns from left to right."""

_FENCED = " AND fence = :fence"

_SHARD = "(SELECT shard, position, previous FROM treeclaim_feed_shards WHERE shard = :shard)"

_JSON_COLUMNS = ("kind", "object_id", "parts", "uuid", "tree", "amounts")


def _make_insert(kind: str, shard: str = _SHARD) -> str:
    """Return the INSERT of the rows in one JSON list, for a kind of database."""
    columns = [f"r.{name}" for name in _JSON_COLUMNS]
    types = {name: str(feed.c[name].type) for name in _JSON_COLUMNS}
    at = ":at, :format"
    if kind == "sqlite":
        columns = [f"json_extract(value, '$.{name}')" for name in _JSON_COLUMNS]
        rows = "json_each(:changes)"
    elif kind == "postgresql":
        at = "CAST(:at AS timestamp), CAST(:format AS smallint)"
        typed_columns = ", ".join(f"{name} {type_}" for name, type_ in types.items())
        rows = f"json_to_recordset(CAST(:changes AS json)) AS r ({typed_columns})"
    else:
        paths = ", ".join(f"{name} {type_} PATH '$.{name}'" for name, type_ in types.items())
        rows = f"JSON_TABLE(:changes, '$[*]' COLUMNS ({paths})) r"
    return f"""
        INSERT INTO treeclaim_feed
            (shard, position, previous, created_at, format, {", ".join(_JSON_COLUMNS)})
        SELECT s.shard, s.position, s.previous, {at}, {", ".join(columns)} FROM {shard} s, {rows}
    """


_INSERT_BY_KIND = {kind: _make_insert(kind) for kind in ("sqlite", "postgresql", "mysql")}

# The lock timeout lasts until the end of the transaction, which sends only COMMIT after this.
_POSTGRESQL = f"""
WITH advanced AS (
{_ADVANCE} AND set_config('lock_timeout', :wait, true) IS NOT NULL
RETURNING shard, position, previous)
{_make_insert("postgresql", "advanced")}
"""

_SELECT_SHARDS = "SELECT shard, position, token, pruned_to FROM treeclaim_feed_shards"
_COUNT_COMMITS = """
SELECT shard, COUNT(DISTINCT position) AS commits, MIN(position) AS least, MAX(position) AS greatest
FROM treeclaim_feed
"""
_SELECT_PREVIOUS = "SELECT DISTINCT shard, previous FROM treeclaim_feed"
UNREAD, _AT_POSITIONS = (
    " OR ".join(f"shard = {shard} AND position {sign} :at_{shard}" for shard in range(SHARDS))
    for sign in (">", "=")
)
"""Conditions on the positions of all shards."""

_WRITER = "SELECT writer, fence FROM treeclaim_feed_shards WHERE shard = 0"


class Shard(NamedTuple):
    """The number of a shard, the position and token of its last commit, and the last pruned position."""

    number: int
    position: int
    token: int
    pruned_to: int


class FeedState(Enum):
    """The relation of a view of the feed to a cursor."""

    CURRENT = "no commit since the cursor"
    NEWS = "the view has all commits since the cursor"
    INCOMPLETE = "the view lacks a commit that a later view has"
    LOST = "commits since the cursor were pruned, or the history is another one"


class ShardBusyError(Exception):
    """The lock of the drawn shard was not free in time; the write must run again with another shard."""


class OtherWriterError(Exception):
    """Another node of a Galera cluster wrote last; this node must take over first."""


class ShardChoice:
    """Draws a shard for each write of a process; thread-safe."""

    def __init__(self) -> None:
        self._avoided_until: dict[int, float] = {}

    def draw(self, connection: Connection) -> int:
        """Return a random shard that was not busy lately; 0 on SQLite, which has one writer at a time."""
        if not get_system(connection).is_server:
            return 0
        now = monotonic()
        free_shards = [
            shard for shard in range(SHARDS) if self._avoided_until.get(shard, 0.0) < now
        ]
        # `random` would draw the same numbers in both processes after a fork.
        return secrets.choice(free_shards or range(SHARDS))

    def avoid(self, shard: int) -> None:
        """Draw other shards for a while."""
        self._avoided_until[shard] = monotonic() + _AVOID_SECONDS


def read_fence(transaction: WriteTransaction) -> int | None:
    """Return the fence of the present writer on Galera, None elsewhere; must be the first statement of a write.

    On Galera a row lock holds on one node only, and transactions of two nodes conflict only if they write the same
    row. A takeover writes one fence into all shards, and a write advances a shard only if it has the fence that
    the write has read. Between writes of two nodes is therefore a takeover, which conflicts with both.

    Raises:
        OtherWriterError: if another node wrote last.
        RetryTransactionError: if the shards are missing.
    """
    node = get_galera_node(transaction.connection)
    if node is None:
        return None
    for row in transaction.rows(_WRITER):
        if row.writer != node:
            raise OtherWriterError
        return int(row.fence)
    raise RetryTransactionError


def take_over(connection: Connection) -> None:
    """Make the node of a connection the writer, in a separate transaction that writes all shards."""
    node = get_galera_node(connection)
    locked_rows = connection.execute(
        sa.select(feed_shards.c.writer).order_by(feed_shards.c.shard).with_for_update()
    )
    if any(row.writer != node for row in locked_rows.all()):
        connection.execute(sa.update(feed_shards).values(writer=node, fence=draw_token()))


def append_changes(transaction: WriteTransaction, shard: int, fence: int | None = None) -> None:
    """Advance a shard, and append the changes of a transaction to the feed; only COMMIT may follow.

    A transaction without changes appends nothing, except on Galera, where it appends a row of the kind `NOTHING`.

    Raises, here or at the flush:
        RetryTransactionError: if the fence is no longer valid.
        DBAPIError: if the shard's lock was not free in time.
    """
    changes = _make_rows(transaction)
    if not changes:
        if fence is None:
            return
        changes = [{"kind": NOTHING, "object_id": 0}]
    dialect = transaction.connection.dialect
    values: dict[str, Any] = {"shard": shard, "at": transaction.now, "format": FORMAT}
    advance: dict[str, Any] = {"shard": shard, "token": draw_token()}
    is_postgresql = dialect.name == "postgresql"
    if not is_postgresql:
        sql = _ADVANCE
        if fence is not None:
            sql += _FENCED
            advance["fence"] = fence
        if getattr(dialect, "is_mariadb", False):
            sql = f"SET STATEMENT innodb_lock_wait_timeout = :wait FOR {sql}"
            advance["wait"] = ceil(LOCK_SECONDS)
        transaction.change(sql, rows=1, **advance)
    for number, rows in enumerate(chunks(changes, ROWS_PER_STATEMENT)):
        sql, parameters = _INSERT_BY_KIND[dialect.name], values
        if is_postgresql and number == 0:
            sql, parameters = (
                _POSTGRESQL,
                values | advance | {"wait": f"{LOCK_SECONDS * 1000:.0f}ms"},
            )
        transaction.change(sql, rows=len(rows), changes=orjson.dumps(rows).decode(), **parameters)


def _make_rows(transaction: WriteTransaction) -> list[dict[str, Any]]:
    """Return the columns of the feed rows that are not NULL."""
    effects = [
        (PROVIDER, provider_id, effect)
        for provider_id, effect in sorted(
            transaction.touched_providers.items(), key=lambda item: item[0]
        )
    ]
    if transaction.touched_catalogue:
        effects.append((CATALOGUE, 0, ProviderEffect(EVERYTHING)))
    rows = []
    for kind, object_id, effect in effects:
        row = {
            "kind": kind,
            "object_id": object_id,
            "parts": int(effect.parts),
            "uuid": effect.uuid,
            "tree": effect.tree,
            "amounts": write_amounts(effect.usage),
        }
        rows.append({name: value for name, value in row.items() if value is not None})
    return rows


def is_shard_statement(sql: str | None) -> bool:
    """Return whether a statement advances a shard."""
    return sql is not None and "UPDATE treeclaim_feed_shards SET previous" in sql


def load_shards(transaction: ReadTransaction) -> list[Shard]:
    """Load the shards."""
    return make_shards(transaction.rows(_SELECT_SHARDS))


def make_shards(rows: Iterable[Sequence[Any]]) -> list[Shard]:
    """Return shards, ordered by number, from rows with their columns."""
    return sorted(Shard(*row) for row in rows)


def make_cursor(shards: Sequence[Shard]) -> Cursor:
    """Return the cursor at the end of the shards."""
    return Cursor(
        tuple([shard.position for shard in shards]), tuple([shard.token for shard in shards])
    )


def load_cursor(transaction: ReadTransaction) -> Cursor:
    """Return the end of the change feed in the view of a transaction.

    This view may lack a commit before the cursor; later views show all of them. A reader must therefore not
    combine this cursor with other results of the same transaction.
    """
    return make_cursor(load_shards(transaction))


class Chain(NamedTuple):
    """Commits of a shard: their number, the last position, and the token before the first commit."""

    commits: int
    last_position: int
    previous_token: int


def load_feed_rows(
    transaction: ReadTransaction,
    cursor: Cursor,
    shards: Sequence[Shard],
    query: str,
    groups: str = "",
) -> list[Any]:
    """Return the rows of a query over the feed rows after a cursor; `groups` is the end of the query."""
    positions = cursor.positions
    if len(positions) != SHARDS or all(
        shard.position <= positions[shard.number] for shard in shards
    ):
        return []
    values = {f"at_{shard}": position for shard, position in enumerate(positions)}
    return transaction.rows(f"{query} WHERE {UNREAD} {groups}", **values)


def make_chains(rows: Iterable[Any]) -> dict[int, Chain]:
    """Return the commits of feed rows by shard."""
    token_before: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in rows:
        token_before[row.shard][row.position] = row.previous
    return {
        shard: Chain(len(tokens), max(tokens), tokens[min(tokens)])
        for shard, tokens in token_before.items()
    }


def load_chains(
    transaction: ReadTransaction, cursor: Cursor, shards: Sequence[Shard]
) -> dict[int, Chain]:
    """Return the commits after a cursor by shard; the database counts the feed rows."""
    count_rows = load_feed_rows(transaction, cursor, shards, _COUNT_COMMITS, "GROUP BY shard")
    if not count_rows:
        return {}
    first_positions = {f"at_{shard}": 0 for shard in range(SHARDS)}
    first_positions |= {f"at_{row.shard}": row.least for row in count_rows}
    previous_tokens = dict(
        map(
            tuple, transaction.rows(f"{_SELECT_PREVIOUS} WHERE {_AT_POSITIONS}", **first_positions)
        )
    )
    return {
        row.shard: Chain(row.commits, row.greatest, previous_tokens[row.shard])
        for row in count_rows
    }


def has_all(
    transaction: ReadTransaction,
    cursor: Cursor,
    shards: Sequence[Shard],
    chains: Mapping[int, Chain],
) -> bool:
    """Return whether the view of a transaction has all commits since a cursor (arguments as for `compare`).

    Raises:
        IncompleteViewError: if another view may have them.
    """
    state = compare(cursor, shards, chains)
    if state is FeedState.INCOMPLETE:
        transaction.require_another_view()
    return state in {FeedState.CURRENT, FeedState.NEWS}


def compare(cursor: Cursor, shards: Sequence[Shard], chains: Mapping[int, Chain]) -> FeedState:
    """Compare a cursor with a view of the feed.

    Args:
        cursor: The end of the commits that a reader has.
        shards: All shards of the view.
        chains: The commits of the feed rows after the cursor, by shard.
    """
    if len(shards) != SHARDS or len(cursor.positions) != SHARDS:
        return FeedState.LOST
    state = FeedState.CURRENT
    for shard, position, token in zip(shards, cursor.positions, cursor.tokens, strict=True):
        if (shard.position, shard.token) == (position, token):
            continue
        if position >= shard.position or position < shard.pruned_to:
            return FeedState.LOST
        chain = chains.get(shard.number)
        if chain is None or chain[:2] != (shard.position - position, shard.position):
            state = FeedState.INCOMPLETE
        elif chain.previous_token != token:
            return FeedState.LOST
        elif state is FeedState.CURRENT:
            state = FeedState.NEWS
    return state


def reset(connection: Connection) -> None:
    """Give all shards new tokens and no readable past, so that each reader loads everything.

    This is for changes that are not in the feed. It creates missing shards, and invalidates every fence.
    """
    positions = dict.fromkeys(range(SHARDS), 0)
    locked_rows = connection.execute(
        sa.select(feed_shards).order_by(feed_shards.c.shard).with_for_update()
    ).all()
    positions |= {row.shard: row.position for row in locked_rows}
    newest_positions = sa.select(feed.c.shard, sa.func.max(feed.c.position).label("position"))
    for row in connection.execute(newest_positions.group_by(feed.c.shard)).all():
        positions[row.shard] = max(positions[row.shard], row.position)
    connection.execute(sa.delete(feed_shards))
    new_shards = [make_shard(number, position) for number, position in positions.items()]
    connection.execute(sa.insert(feed_shards), new_shards)
