# SPDX-License-Identifier: Apache-2.0
"""Writers, readers, prunings, restored backups and torn views on one database, in whatever order they come."""

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
from treeclaim.store.schema.tables import SHARDS, feed_shards, new_shard, own_tables, placement

PROVIDERS = [str(uuid.UUID(int=number + 1)) for number in range(4)]
CONSUMERS = [str(uuid.UUID(int=number + 1)) for number in range(2)]
CLASS = "CUSTOM_SLOT"
TRAITS = ["CUSTOM_A", "CUSTOM_B"]
WRITERS = 3
READERS = 3
EVERYTHING = timedelta(seconds=-1)
"""The age limit of a pruning that removes all it may."""

AN_HOUR = timedelta(hours=1)
_NO_FOREIGN_KEYS = {
    "sqlite": "PRAGMA defer_foreign_keys = ON",
    "postgresql": "SET LOCAL session_replication_role = replica",
    "mysql": "SET SESSION foreign_key_checks = 0",
}


def prepare(url):
    """Make an empty database ready; without the standard names, which would only take time."""
    store = Store(DatabaseSettings(url, sqlite_synchronous=False))
    schema.sync(store.engine)
    store.write(resource_classes.create, CLASS)
    store.housekeeper.prune(EVERYTHING)
    store.close()


def tables():
    """All tables there are, each after those that it refers to."""
    return [*placement.sorted_tables, *own_tables.sorted_tables]


class Reader:
    """A reader that follows the feed on demand, as a Replica does."""

    def __init__(self, store):
        self.store = store
        self.forest = Forest()
        self.cursor = None

    def catch_up(self):
        """Apply the commits since the last call; return whether that was a full load."""
        changes = self.store.changes(self.cursor)
        if changes is None:
            return False
        assert self.forest.is_consistent_with(changes)
        self.forest.apply(changes)
        self.cursor = changes.cursor
        return changes.complete

    def picture(self):
        return picture_of(self.forest)


class Client:
    """A client that lists all providers, and then updates those that the changes since its cursor name."""

    def __init__(self, store):
        self.store = store
        self.cursor = None
        self.known = {}

    def catch_up(self):
        news = None
        if self.cursor is not None:
            news = self.store.read(load_news, read_cursor(self.cursor))
        cursor = self.store.cursor() if news is None else news.cursor
        present = self._list()
        if news is None:
            self.known = present
        for uuid_ in () if news is None else news.changes:
            self.known.pop(uuid_, None)
            if uuid_ in present:
                self.known[uuid_] = present[uuid_]
        self.cursor = write_cursor(cursor)

    def _list(self):
        forest = Forest()
        forest.apply(self.store.changes(None))
        return {record.uuid: str(record) for record in forest.records()}


class TornView:
    """Makes one view of a store show the second of two commits of a shard, and not the first.

    A read view of MariaDB may be like this: it is made while both are committed. Later views show both.

    Args:
        world: Makes the commits.
        number: The number of the torn view, counted from now on.
        commits: Two functions that change different rows, in the same shard.
    """

    def __init__(self, world, number, commits):
        self._world = world
        self._remaining = number
        self._commits = commits
        self._complete = None

    @contextlib.contextmanager
    def installed(self, store):
        """See to it that each view of the store begins here."""
        ask = store._probe.rows

        def rows(sql, parameters=()):
            self._begin_view()
            return ask(sql, parameters)

        def begun(_connection):
            self._begin_view()

        store._probe.rows = rows
        # Before the listeners of the store, which may begin the transaction.
        sa.event.listen(store.engine, "begin", begun, insert=True)
        try:
            yield
        finally:
            store._probe.rows = ask
            sa.event.remove(store.engine, "begin", begun)
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
    """The rows after two commits, without the rows that only the first of them changed."""
    torn = {}
    for table in tables():
        keys = [column.name for column in table.primary_key]
        old, middle, new = (
            {tuple(row[key] for key in keys): row for row in state[table.name]}
            for state in (before, between, after)
        )
        rows = dict(new)
        for key in old.keys() | middle.keys():
            if old.get(key) != middle.get(key) == new.get(key):
                rows.pop(key, None)
                if key in old:
                    rows[key] = old[key]
        torn[table.name] = list(rows.values())
    return torn


def picture_of(forest):
    """All that a Forest knows; of attributes the types too, for 1 and true are equal to Python."""
    records = forest.records()
    return records, [str(record.attributes) for record in records], forest.catalogue


class World:
    """A database with stores as of several processes, readers, and backups to go back to."""

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

    # -- what may happen -------------------------------------------------------------------

    def create(self, writer, which):
        name = PROVIDERS[which]
        self._write(writer, providers.create, uuid=name, name=name, parent_uuid=None)

    def delete(self, writer, which):
        self._write(writer, providers.delete, PROVIDERS[which])

    def stock(self, writer, which):
        """Give a provider some inventory, which raises its generation."""

        def change(transaction):
            write_inventories(transaction, PROVIDERS[which], {})
            write_inventories(transaction, PROVIDERS[which], {CLASS: Inventory(8)})

        self._write(writer, change)

    def change(self, writer, which):
        """Change a provider, or make it if it is not there."""
        self.create(writer, which)
        self.stock(writer, which)

    def describe(self, writer, which):
        """Give a provider attributes, which raises its generation; some are equal but for the type."""

        def change(transaction):
            known = lock_provider(transaction, PROVIDERS[which])
            values = {"ecc": (True, 1, "1")[known.generation % 3], f"n{writer}": which}
            write_part(transaction, PROVIDERS[which], ATTRIBUTES, values, known.generation)

        self._write(writer, change)

    def replace(self, writer, which):
        """Delete a provider if it is there, and make another one."""
        self._write(writer, write_inventories, PROVIDERS[which], {})
        self.delete(writer, which)
        self.create(writer, (which + 1) % len(PROVIDERS))

    def claim(self, writer, which):
        """Claim something of a provider, in place of the consumer's other claims."""
        self._claim(writer, CONSUMERS[which % len(CONSUMERS)], PROVIDERS[which], 1 + which)

    def move(self, writer, which):
        """Claim something of another provider."""
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
        """Claim so much at once that the feed has no amounts."""

        def tell_no_amounts(transaction):
            transaction.touch_providers(list(transaction.touched_providers), Part.ALLOCATIONS)

        consumer, provider = CONSUMERS[which % len(CONSUMERS)], PROVIDERS[which]
        self._claim(writer, consumer, provider, 2, tell_no_amounts)

    def trait(self, writer, which):
        """Make a trait, or take it away."""
        name = TRAITS[which % len(TRAITS)]
        known = name in self.load().catalogue.traits
        self._write(writer, trait_names.delete if known else trait_names.ensure, name)

    def _write(self, writer, operation, *args, **kwargs):
        with contextlib.suppress(TreeclaimError):
            self.stores[writer].write(operation, *args, **kwargs)

    def restart(self, writer, _which):
        """End a process and start another in its place."""
        self.stores[writer].close()
        self.stores[writer] = self._open(writer)

    def prune_everything(self, writer, _which):
        """Prune with nothing kept."""
        self.stores[writer].housekeeper.prune(EVERYTHING)

    def prune_old(self, writer, _which):
        """Prune changes from before the last passing of time, or nothing without one."""
        long_ago = AN_HOUR if self.aged_at is None else utc_now() - self.aged_at
        self.stores[writer].housekeeper.prune(long_ago)

    def age(self, _writer, _which):
        """Let so much time pass that all feed rows are old.

        No row is changed, because the time of a row is also part of its content.
        """
        self.aged_at = utc_now()

    def backup(self, _writer, _which):
        self.backups.append(self.copy())

    def restore(self, _writer, which):
        """Go back to a backup while all processes go on: also what losing commits looks like."""
        self.put(self.backups[-1 - which % len(self.backups)])

    def make_anew(self, _writer, _which):
        """Drop the database and make another one."""
        new_shards = [new_shard(number) for number in range(SHARDS)]
        self.put(self.backups[0] | {feed_shards.name: new_shards})

    def reset_feed(self, writer, which):
        """Change a provider by hand, and then reset the feed."""
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
        # Settings of a session end with its connection.
        self._engine.dispose()

    def copy(self):
        """All rows by the name of their table."""
        with self._engine.connect() as connection:
            return {
                table.name: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
                for table in tables()
            }

    # -- what must hold --------------------------------------------------------------------

    def load(self):
        """Everything as it is now, in a Forest that has never seen anything else."""
        fresh = Forest()
        fresh.apply(self.onlooker.changes(None))
        return fresh

    def read(self, _writer, which):
        """Let a reader catch up, and compare it with a new reader."""
        self.must_be_current(self.readers[which % READERS])

    def read_as_client(self, _writer, _which):
        """Let the client catch up, and compare it with a new client."""
        self.client.catch_up()
        fresh = Client(self.onlooker)
        fresh.catch_up()
        assert self.client.known == fresh.known

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
