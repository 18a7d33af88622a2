# SPDX-License-Identifier: Apache-2.0
"""A database with writers, readers, prunings, restored backups and torn views, in any order."""

import contextlib
import uuid
from datetime import timedelta

import sqlalchemy as sa

from tests.store.hosts import utc_now, write_inventories
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import read_cursor, write_cursor
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.parts import ATTRIBUTES, Part
from treeclaim.model.provider import Inventory
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.engine import make_engine
from treeclaim.store.feed import shards
from treeclaim.store.feed.news import load_news
from treeclaim.store.operations.allocations import claims
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.catalogue import resource_classes
from treeclaim.store.operations.catalogue import traits as trait_names
from treeclaim.store.operations.locks.provider_rows import lock_provider
from treeclaim.store.operations.providers import providers
from treeclaim.store.operations.providers.entries import write_part
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema.tables import SHARDS, feed_shards, make_shard, own_tables, placement

PROVIDERS = [str(uuid.UUID(int=number + 1)) for number in range(4)]
CONSUMERS = [str(uuid.UUID(int=number + 1)) for number in range(2)]
CLASS = "CUSTOM_SLOT"
TRAITS = ["CUSTOM_A", "CUSTOM_B"]
WRITERS = 3
READERS = 3
EVERYTHING = timedelta(seconds=-1)
"""The age limit of a pruning that removes all rows it may remove."""

AN_HOUR = timedelta(hours=1)
_NO_FOREIGN_KEYS = {
    "sqlite": "PRAGMA defer_foreign_keys = ON",
    "postgresql": "SET LOCAL session_replication_role = replica",
    "mysql": "SET SESSION foreign_key_checks = 0",
}


def prepare(url):
    """Prepare an empty database, without the standard names, to save time."""
    store = Store(DatabaseSettings(url, sqlite_synchronous=False))
    schema.sync(store.engine)
    store.write(resource_classes.create, CLASS)
    store.housekeeper.prune(EVERYTHING)
    store.close()


def tables():
    """Return all tables, each after the tables that it references."""
    return [*placement.sorted_tables, *own_tables.sorted_tables]


class Reader:
    """A reader that follows the feed on demand, as a Replica does."""

    def __init__(self, store):
        self.store = store
        self.forest = Forest()
        self.cursor = None

    def catch_up(self):
        """Apply the commits since the last call; return whether that was a full load."""
        changes = self.store.load_changes(self.cursor)
        if changes is None:
            return False
        assert self.forest.is_consistent_with(changes)
        self.forest.apply(changes)
        self.cursor = changes.cursor
        return changes.complete

    def picture(self):
        return picture_of(self.forest)


class Client:
    """A client that lists all providers, and later updates those in the changes since its cursor."""

    def __init__(self, store):
        self.store = store
        self.cursor = None
        self.providers_by_uuid = {}

    def catch_up(self):
        news = None
        if self.cursor is not None:
            news = self.store.read(load_news, read_cursor(self.cursor))
        cursor = self.store.load_cursor() if news is None else news.cursor
        present = self._list()
        if news is None:
            self.providers_by_uuid = present
        for uuid_ in () if news is None else news.changes:
            self.providers_by_uuid.pop(uuid_, None)
            if uuid_ in present:
                self.providers_by_uuid[uuid_] = present[uuid_]
        self.cursor = write_cursor(cursor)

    def _list(self):
        forest = Forest()
        forest.apply(self.store.load_changes(None))
        return {record.uuid: str(record) for record in forest.records()}


class TornView:
    """Makes one view of a store show the second of two commits of a shard, but not the first.

    A read view of MariaDB may do so if it is created during both commits. Later views show both.

    Args:
        world: The database.
        number: Number of views before the torn view.
        commits: Two functions that commit changes of different rows in the same shard.
    """

    def __init__(self, world, number, commits):
        self._world = world
        self._remaining = number
        self._commits = commits
        self._complete = None

    @contextlib.contextmanager
    def installed(self, store):
        """Intercept the beginning of each view of the store."""
        ask = store._probe.fetch_rows

        def rows(sql, parameters=()):
            self._begin_view()
            return ask(sql, parameters)

        def begin(_connection):
            self._begin_view()

        store._probe.fetch_rows = rows
        # Before the listeners of the store, which may begin the transaction.
        sa.event.listen(store.engine, "begin", begin, insert=True)
        try:
            yield
        finally:
            store._probe.fetch_rows = ask
            sa.event.remove(store.engine, "begin", begin)
            self._show_all()

    def _show_all(self):
        if self._complete is not None:
            self._world.put(self._complete)
            self._complete = None

    def _begin_view(self):
        self._show_all()
        if self._remaining == 0:
            states = [self._world.copy()]
            for commit in self._commits:
                commit()
                states.append(self._world.copy())
            # A commit may be refused.
            before, between, after = (len(state["treeclaim_feed"]) for state in states)
            self._world.torn_views += before < between < after
            self._complete = states[-1]
            self._world.put(without_the_first(*states))
        self._remaining -= 1


def without_the_first(before, between, after):
    """Return the rows after two commits, but rows that only the first commit changed as before it."""
    torn = {}
    for table in tables():
        keys = [column.name for column in table.primary_key]
        old_rows, middle_rows, new_rows = (
            {tuple(row[key] for key in keys): row for row in state[table.name]}
            for state in (before, between, after)
        )
        rows = dict(new_rows)
        for key in old_rows.keys() | middle_rows.keys():
            if old_rows.get(key) != middle_rows.get(key) == new_rows.get(key):
                rows.pop(key, None)
                if key in old_rows:
                    rows[key] = old_rows[key]
        torn[table.name] = list(rows.values())
    return torn


def picture_of(forest):
    """Return the contents of a Forest; attributes also as text, because 1 equals true in Python."""
    records = forest.records()
    return records, [str(record.attributes) for record in records], forest.catalogue


class World:
    """A database with the stores of several processes, readers, and backups."""

    def __init__(self, url):
        self.url = url
        self.settings = DatabaseSettings(url, sqlite_synchronous=False)
        self._engine = make_engine(self.settings)
        self.stores = [self._open(writer) for writer in range(WRITERS)]
        self.onlooker = Store(self.settings)
        self.readers = [Reader(self.onlooker) for _ in range(READERS)]
        self.client = Client(self.onlooker)
        self.backups = [self.copy()]
        self.aged_at = None
        self.torn_views = 0

    def close(self):
        for store in (*self.stores, self.onlooker):
            store.close()
        self._engine.dispose()

    def _open(self, writer):
        """Open a store that writes to one of two shards, so that shards have many commits."""
        store = Store(self.settings)
        choice = store._writer._shards
        setattr(choice, "draw", lambda _connection: writer % 2)  # noqa: B010 - as no method is replaced
        return store

    # -- actions ---------------------------------------------------------------------------

    def create(self, writer, which):
        name = PROVIDERS[which]
        self._write(writer, providers.create, uuid=name, name=name, parent_uuid=None)

    def delete(self, writer, which):
        self._write(writer, providers.delete, PROVIDERS[which])

    def stock(self, writer, which):
        """Replace the inventory of a provider, which raises its generation."""

        def change(transaction):
            write_inventories(transaction, PROVIDERS[which], {})
            write_inventories(transaction, PROVIDERS[which], {CLASS: Inventory(8)})

        self._write(writer, change)

    def change(self, writer, which):
        """Create a missing provider, and change it."""
        self.create(writer, which)
        self.stock(writer, which)

    def describe(self, writer, which):
        """Set attributes of a provider, which raises its generation; some values differ only by type."""

        def change(transaction):
            provider = lock_provider(transaction, PROVIDERS[which])
            values = {"ecc": (True, 1, "1")[provider.generation % 3], f"n{writer}": which}
            write_part(transaction, PROVIDERS[which], ATTRIBUTES, values, provider.generation)

        self._write(writer, change)

    def replace(self, writer, which):
        """Delete a provider, and create the next one."""
        self._write(writer, write_inventories, PROVIDERS[which], {})
        self.delete(writer, which)
        self.create(writer, (which + 1) % len(PROVIDERS))

    def claim(self, writer, which):
        """Replace the allocations of a consumer by a claim on a provider."""
        self._claim(writer, CONSUMERS[which % len(CONSUMERS)], PROVIDERS[which], 1 + which)

    def move(self, writer, which):
        """Replace the allocations of a consumer by a claim on another provider."""
        provider = PROVIDERS[(which + writer + 1) % len(PROVIDERS)]
        self._claim(writer, CONSUMERS[which % len(CONSUMERS)], provider, 1)

    def _claim(self, writer, consumer, provider, amount, also=None):
        claim = ConsumerClaim(consumer, {provider: {CLASS: amount}}, "project", "user")

        def change(transaction):
            claims.write_request(transaction, ClaimRequest([claim]))
            if also is not None:
                also(transaction)

        self._write(writer, change)

    def release(self, writer, which):
        """Release all claims of a consumer."""
        release = ClaimRequest.release(CONSUMERS[which % len(CONSUMERS)])
        self._write(writer, claims.write_request, release)

    def claim_without_amounts(self, writer, which):
        """Claim without amounts in the feed, as a claim of many classes does."""

        def drop_amounts(transaction):
            transaction.touch_providers(list(transaction.touched_providers), Part.ALLOCATIONS)

        consumer, provider = CONSUMERS[which % len(CONSUMERS)], PROVIDERS[which]
        self._claim(writer, consumer, provider, 2, drop_amounts)

    def trait(self, writer, which):
        """Create a trait, or delete an existing one."""
        name = TRAITS[which % len(TRAITS)]
        exists = name in self.load().catalogue.traits
        self._write(writer, trait_names.delete if exists else trait_names.ensure, name)

    def _write(self, writer, operation, *args, **kwargs):
        with contextlib.suppress(TreeclaimError):
            self.stores[writer].write(operation, *args, **kwargs)

    def restart(self, writer, _which):
        """Replace a process by a new process."""
        self.stores[writer].close()
        self.stores[writer] = self._open(writer)

    def prune_everything(self, writer, _which):
        """Prune all rows that may be pruned."""
        self.stores[writer].housekeeper.prune(EVERYTHING)

    def prune_old(self, writer, _which):
        """Prune the changes before the last `age`; without one, prune nothing."""
        long_ago = AN_HOUR if self.aged_at is None else utc_now() - self.aged_at
        self.stores[writer].housekeeper.prune(long_ago)

    def age(self, _writer, _which):
        """Let all present feed rows count as old, without changing their times, which are part of their contents."""
        self.aged_at = utc_now()

    def backup(self, _writer, _which):
        self.backups.append(self.copy())

    def restore(self, _writer, which):
        """Restore a backup while all processes continue, which also loses commits."""
        self.put(self.backups[-1 - which % len(self.backups)])

    def recreate(self, _writer, _which):
        """Replace the database by a new one."""
        new_shards = [make_shard(number) for number in range(SHARDS)]
        self.put(self.backups[0] | {feed_shards.name: new_shards})

    def reset_feed(self, writer, which):
        """Change providers outside of the feed, and then reset the feed."""
        with self._engine.begin() as connection:
            connection.exec_driver_sql(
                f"UPDATE resource_providers SET generation = {7 + writer} WHERE id > {which}"
            )
        with self._engine.begin() as connection:
            shards.reset(connection)

    def put(self, state):
        """Replace all rows."""
        with self._engine.begin() as connection:
            connection.exec_driver_sql(_NO_FOREIGN_KEYS[connection.dialect.name])
            for table in reversed(tables()):
                connection.execute(sa.delete(table))
            for table in tables():
                if state[table.name]:
                    connection.execute(sa.insert(table), state[table.name])
        # The setting of the session ends with its connection.
        self._engine.dispose()

    def copy(self):
        """Return all rows by table."""
        with self._engine.connect() as connection:
            return {
                table.name: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
                for table in tables()
            }

    # -- checks ----------------------------------------------------------------------------

    def load(self):
        """Return a new Forest with the present contents."""
        fresh = Forest()
        fresh.apply(self.onlooker.load_changes(None))
        return fresh

    def read(self, _writer, which):
        """Let a reader catch up, and compare it with a new reader."""
        self.must_be_current(self.readers[which % READERS])

    def read_as_client(self, _writer, _which):
        """Let the client catch up, and compare it with a new client."""
        self.client.catch_up()
        fresh = Client(self.onlooker)
        fresh.catch_up()
        assert self.client.providers_by_uuid == fresh.providers_by_uuid

    def read_torn(self, writer, which):
        """Let a reader catch up through a torn view, compare it after the next view, and report full loads."""
        return self._see_torn(self.readers[which % READERS], writer, which)

    def load_torn(self, writer, which):
        """Let a new reader load everything through a torn view."""
        self._see_torn(Reader(self.onlooker), writer, which)

    def read_torn_as_client(self, writer, which):
        """Let the client catch up through a torn view."""
        self._see_torn(self.client, writer, which)
        self.read_as_client(writer, which)

    def _see_torn(self, reader, view, which):
        first, second = which, (which + 1) % len(PROVIDERS)
        for provider in (first, second):
            self.change(0, provider)
            self.claim(0, provider)
        act = self.claim if which % 2 else self.describe
        torn = TornView(self, view, [lambda: act(0, first), lambda: self.describe(0, second)])
        with torn.installed(self.onlooker):
            is_complete = reader.catch_up()
        if isinstance(reader, Reader):
            self.must_be_current(reader)
        return is_complete

    def must_be_current(self, reader):
        """Fail if a reader that has caught up differs from a new reader; report full loads."""
        complete = reader.catch_up()
        fresh = self.load()
        assert reader.picture() == picture_of(fresh)
        return complete
