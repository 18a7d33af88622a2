# SPDX-License-Identifier: Apache-2.0
"""Writers, readers, prunings and restored backups on one database, in whatever order they come."""

import contextlib
import sqlite3
import uuid
from datetime import timedelta

import sqlalchemy as sa

from tests.store.upkeep import utc_now
from treeclaim.forest.table.forest import Forest
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.parts import Part
from treeclaim.model.provider import Inventory
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.allocations import claims
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.catalogue import resource_classes
from treeclaim.store.operations.catalogue import traits as trait_names
from treeclaim.store.operations.locks.provider_rows import lock_provider
from treeclaim.store.operations.providers import providers
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema.tables import own_tables, placement

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
    """A reader that follows the feed whenever it is told to, as a Replica does."""

    def __init__(self, store):
        self.store = store
        self.forest = Forest()
        self.cursor = None

    def catch_up(self):
        """Apply what was committed since the last time; return whether that was a full load."""
        changes = self.store.changes(self.cursor)
        if changes is None:
            return False
        assert self.forest.agrees_with(changes)
        self.forest.apply(changes)
        self.cursor = changes.cursor
        return changes.complete

    def picture(self):
        return picture_of(self.forest)


def picture_of(forest):
    """All that a Forest knows; of attributes the types too, for 1 and true are equal to Python."""
    records = forest.records()
    return records, [str(record.attributes) for record in records], forest.catalogue


class World:
    """A database with stores as of several processes, readers, and backups to go back to."""

    def __init__(self, url):
        self.url = url
        self.settings = DatabaseSettings(url, sqlite_synchronous=False)
        self.stores = [Store(self.settings) for _ in range(WRITERS)]
        self.onlooker = Store(self.settings)
        self.readers = [Reader(self.onlooker) for _ in range(READERS)]
        self.backups = [self._copy()]
        self.aged_at = None

    def close(self):
        for store in (*self.stores, self.onlooker):
            store.close()

    # -- what may happen -------------------------------------------------------------------

    def create(self, writer, which):
        name = PROVIDERS[which]
        self._write(writer, providers.create, uuid=name, name=name, parent_uuid=None)

    def delete(self, writer, which):
        self._write(writer, providers.delete, PROVIDERS[which])

    def stock(self, writer, which):
        """Give a provider some inventory, which raises its generation."""

        def change(transaction):
            providers.write_inventories(transaction, PROVIDERS[which], {})
            providers.write_inventories(transaction, PROVIDERS[which], {CLASS: Inventory(8)})

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
            providers.replace_attributes(transaction, PROVIDERS[which], known.generation, values)

        self._write(writer, change)

    def replace(self, writer, which):
        """Delete a provider if it is there, and make another one."""
        self._write(writer, providers.write_inventories, PROVIDERS[which], {})
        self.delete(writer, which)
        self.create(writer, (which + 1) % len(PROVIDERS))

    def claim(self, writer, which):
        """Let a consumer hold something of a provider, instead of what it holds of others."""
        self._claim(writer, CONSUMERS[which % len(CONSUMERS)], PROVIDERS[which], 1 + which)

    def move(self, writer, which):
        """Let a consumer hold something of another provider."""
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
        """Let a consumer hold nothing."""
        release = ClaimRequest.release(CONSUMERS[which % len(CONSUMERS)])
        self._write(writer, claims.write_request, release)

    def claim_without_amounts(self, writer, which):
        """Claim so much at once that the feed tells no amounts."""

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
        """Let a process end and another take its place; its streams are left behind."""
        self.stores[writer].close()
        self.stores[writer] = Store(self.settings)

    def prune_everything(self, writer, _which):
        """Prune with nothing kept."""
        self.stores[writer].housekeeper.prune(EVERYTHING)

    def prune_old(self, writer, _which):
        """Prune what was told before time last passed, or nothing if it never did."""
        long_ago = AN_HOUR if self.aged_at is None else utc_now() - self.aged_at
        self.stores[writer].housekeeper.prune(long_ago)

    def age(self, _writer, _which):
        """Let so much time pass that all that was told until now is old.

        No row is changed: a record's time is also what it says of its provider.
        """
        self.aged_at = utc_now()

    def backup(self, _writer, _which):
        self.backups.append(self._copy())

    def restore(self, _writer, which):
        """Go back to a backup while all processes go on: also what losing commits looks like."""
        copy = self.backups[-1 - which % len(self.backups)]
        if self.url.startswith("sqlite"):
            with contextlib.closing(self._file()) as target:
                copy.backup(target)
            return
        with self.onlooker.engine.begin() as connection:
            connection.exec_driver_sql(_NO_FOREIGN_KEYS[connection.dialect.name])
            for table in tables():
                connection.execute(sa.delete(table))
                if copy[table.name]:
                    connection.execute(sa.insert(table), copy[table.name])
        # Settings of a session end with its connection.
        self.onlooker.engine.dispose()

    def _file(self):
        return sqlite3.connect(sa.make_url(self.url).database, isolation_level=None)

    def _copy(self):
        if self.url.startswith("sqlite"):
            copy = sqlite3.connect(":memory:")
            with contextlib.closing(self._file()) as source:
                source.backup(copy)
            return copy
        with self.onlooker.engine.connect() as connection:
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
        """Let a reader catch up; it must know just what a fresh one knows."""
        self.must_be_current(self.readers[which % READERS])

    def must_be_current(self, reader):
        """Fail if a reader that has caught up differs from a fresh one; tell of full loads."""
        complete = reader.catch_up()
        fresh = self.load()
        assert reader.picture() == picture_of(fresh)
        return complete
