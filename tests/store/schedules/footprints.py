# SPDX-License-Identifier: Apache-2.0
"""The footprint of a statement: whether its order with statements of other sessions can matter.

All three databases use multiversion concurrency control: a query sees committed rows, and neither blocks writes nor
waits for them. The writes of a transaction become visible at its COMMIT, and its locks are released at its end. A
statement therefore has four footprints, each a set of tables:

reads   committed rows that it sees
locks   rows that it writes or locks; it also sees their committed state
shows   rows that its COMMIT makes visible
frees   locks that the end of its transaction releases

A transaction with a snapshot reads all of it at its first query.

Whole tables are coarse, but independent of conditions and indexes. Only the shards of the feed are distinguished, because
every write advances one of them.
"""

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache

from treeclaim.store.schema.tables import feed, feed_shards, own_tables, placement

COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
BEGIN_WRITING = "BEGIN IMMEDIATE"
"""The first statement of a writer on SQLite, which acquires the only write lock."""

_ANY = None
"""A key that stands for all rows of the table."""

_TABLES = {table.name: table for table in (*placement.sorted_tables, *own_tables.sorted_tables)}
_NAMES = sorted(_TABLES, key=len, reverse=True)
_TABLE = re.compile(rf"\b({'|'.join(_NAMES)})\b(?!\.)", re.IGNORECASE)
_READS = re.compile(r"^\s*(SELECT|WITH|SET|SHOW|BEGIN$|START TRANSACTION)\b", re.IGNORECASE)
_LOCKS = re.compile(
    r"\bFOR (UPDATE|SHARE|KEY SHARE|NO KEY UPDATE)\b|LOCK IN SHARE|_lock\b|\b(get|advisory)_\w*lock",
    re.IGNORECASE,
)
_WRITES_FEED = re.compile(r"\bUPDATE treeclaim_feed_shards\b|\bINSERT INTO treeclaim_feed\b")
_SELECTS = re.compile(r"^\s*\(?(SELECT|WITH)\b", re.IGNORECASE)
_SETS_UP = re.compile(r"^\s*(SET|BEGIN|START TRANSACTION)\b", re.IGNORECASE)

_ALL_ROWS = frozenset((name, _ANY) for name in _NAMES)
_FILE = frozenset({("the write lock of SQLite", _ANY)})


@dataclass(frozen=True)
class Footprint:
    """Sets of rows, each as a table and a key."""

    reads: frozenset = frozenset()
    locks: frozenset = frozenset()
    shows: frozenset = frozenset()
    frees: frozenset = frozenset()

    def __or__(self, other):
        return Footprint(
            self.reads | other.reads,
            self.locks | other.locks,
            self.shows | other.shows,
            self.frees | other.frees,
        )


NOTHING = Footprint()
EVERYTHING = Footprint(_ALL_ROWS, _ALL_ROWS | _FILE, _ALL_ROWS, _ALL_ROWS | _FILE)


@lru_cache(maxsize=1 << 14)
def dependent(first, second):
    """Return whether the order of two statements of different sessions may matter.

    Otherwise each has the same effect and result before and after the other, and neither makes the other wait.
    """
    return depends_on_some(first, second)


def depends_on_some(footprint, footprints):
    """As `dependent`, for many statements; not cached, because such footprints are large."""
    return (
        _overlap(footprint.reads, footprints.shows)
        or _overlap(footprint.shows, footprints.reads)
        or _overlap(footprint.locks, footprints.locks)
        or _overlap(footprint.locks, footprints.frees)
        or _overlap(footprint.frees, footprints.locks)
    )


def _overlap(first, second):
    if not first or not second:
        return False
    keys, other_keys = _keys_by_table(first), _keys_by_table(second)
    for table in keys.keys() & other_keys.keys():
        mine, theirs = keys[table], other_keys[table]
        if _ANY in mine or _ANY in theirs or not mine.isdisjoint(theirs):
            return True
    return False


@lru_cache(maxsize=1 << 14)
def _keys_by_table(rows):
    keys_by_table = {}
    for table, key in rows:
        keys_by_table.setdefault(table, set()).add(key)
    return keys_by_table


@dataclass
class Transaction:
    """The footprint of the present transaction of a session.

    Attributes:
        locked_rows: Locked rows.
        written_rows: Written rows, which become visible at the commit.
        has_snapshot: Whether its snapshot exists, so that it sees no later commits.
    """

    locked_rows: set = field(default_factory=set)
    written_rows: set = field(default_factory=set)
    has_snapshot: bool = False

    def statement(self, sql, parameters, *, is_snapshot):
        """Add a statement; return its footprint.

        Args:
            sql: The statement.
            parameters: The driver's parameters.
            is_snapshot: Whether the transaction reads one snapshot.
        """
        if sql == BEGIN_WRITING:
            self.locked_rows |= _FILE
            return Footprint(locks=_FILE)
        rows = _rows(sql, parameters)
        if _is_query(sql):
            if not is_snapshot or _SETS_UP.search(sql):
                return Footprint(reads=rows)
            if self.has_snapshot:
                return NOTHING
            self.has_snapshot = bool(rows)
            return Footprint(reads=_ALL_ROWS)
        if not rows:
            # Its locks are unknown.
            self.locked_rows |= _ALL_ROWS
            return EVERYTHING
        self.locked_rows |= rows
        if not _SELECTS.search(sql) or _WRITES_FEED.search(sql):
            self.written_rows |= rows
        return Footprint(locks=rows)

    def end(self, *, committed):
        """End the transaction; return the footprint of its end."""
        shows = frozenset(self.written_rows) if committed else frozenset()
        frees = frozenset(self.locked_rows)
        self.locked_rows, self.written_rows, self.has_snapshot = set(), set(), False
        return Footprint(shows=shows, frees=frees)


def takes_snapshot(footprint):
    """Return whether a statement creates the snapshot of its transaction."""
    return footprint.reads == _ALL_ROWS and not footprint.locks


def query(sql):
    """Return the footprint of a query outside of transactions."""
    return Footprint(reads=_rows(sql, ()))


@cache
def _is_query(sql):
    if _LOCKS.search(sql) is not None or _WRITES_FEED.search(sql) is not None:
        return False
    return _READS.search(sql) is not None


def _rows(sql, parameters):
    """Return the rows that a statement may read, or may lock and write with its foreign keys."""
    result = _tables(sql)
    if _WRITES_FEED.search(sql) and isinstance(parameters, dict) and "shard" in parameters:
        # A statement of the feed uses one shard.
        return frozenset((table.name, parameters["shard"]) for table in (feed, feed_shards))
    return frozenset((name, _ANY) for name in result)


@cache
def _tables(sql):
    tables = {name.lower() for name in _TABLE.findall(sql)}
    if _is_query(sql):
        return frozenset(tables)
    return frozenset(tables).union(*(_related(name) for name in tables))


@cache
def _related(name):
    """Return the tables that a table references by foreign keys, and those that reference it."""
    above = {key.column.table.name for key in _TABLES[name].foreign_keys}
    below = {
        other.name
        for other in _TABLES.values()
        for key in other.foreign_keys
        if key.column.table.name == name
    }
    return frozenset(above | below)
