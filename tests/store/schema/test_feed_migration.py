# SPDX-License-Identifier: Apache-2.0
"""The feed's tables as an earlier release made them are brought up to date, and back, in use."""

from contextlib import closing

import pytest
import sqlalchemy as sa
from alembic import command

from tests.databases import EACH_DATABASE, empty_database
from treeclaim.model.errors import SchemaRevisionError
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.connecting.engine import make_engine
from treeclaim.store.operations.providers import providers
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema.tables import PLACEMENT_REVISION, placement

NAMES = [f"00000000-0000-0000-0000-{number:012}" for number in range(6)]


@pytest.fixture(params=EACH_DATABASE)
def url(request, tmp_path):
    """A database of each kind with the tables of revision 0001."""
    with empty_database(request.param, tmp_path) as made:
        engine = make_engine(DatabaseSettings(made))
        placement.create_all(engine)
        schema.stamp(engine, PLACEMENT_REVISION)
        engine.dispose()
        migrate(made, command.upgrade, "0001")
        yield made


def migrate(url, direction, revision):
    """Bring Treeclaim's own tables to a revision."""
    configuration = schema.own_migrations()
    engine = make_engine(DatabaseSettings(url))
    with engine.begin() as connection:
        configuration.attributes["connection"] = connection
        direction(configuration, revision)
    engine.dispose()


class EarlierRelease:
    """Send to the feed what a process of the previous release sends, statement by statement."""

    def __init__(self, url):
        self.engine = make_engine(DatabaseSettings(url))
        self.stream = None
        self.position = 0

    def create(self, name):
        """Make a provider and tell the feed of it."""
        with self.engine.begin() as connection:
            provider_id = self._insert(
                connection,
                "resource_providers (uuid, name, generation) VALUES (:name, :name, 0)",
                name=name,
            )
            own = {"id": provider_id}
            connection.execute(
                sa.text("UPDATE resource_providers SET root_provider_id = id WHERE id = :id"), own
            )
            self._advance(connection)
            told = own | {"stream": self.stream, "position": self.position}
            connection.execute(
                sa.text(
                    "INSERT INTO treeclaim_feed (stream_id, position, kind, object_id, created_at)"
                    " VALUES (:stream, :position, 'provider', :id, '2026-01-01 00:00:00')"
                ),
                told,
            )

    def _advance(self, connection):
        old = {"stream": self.stream, "old": self.position}
        if self.stream is None or not (
            connection.execute(
                sa.text(
                    "UPDATE treeclaim_streams SET position = :old + 1, "
                    "used_at = '2026-01-01 00:00:00' WHERE id = :stream AND position = :old"
                ),
                old,
            ).rowcount
        ):
            self.position = 0
            self.stream = self._insert(
                connection,
                "treeclaim_streams (position, pruned_to, used_at) "
                "VALUES (1, 0, '2026-01-01 00:00:00')",
            )
        self.position += 1

    def _insert(self, connection, rest, **values):
        """Insert a row and let the database count; return its id."""
        if connection.dialect.name == "postgresql":
            rest += " RETURNING id"
        result = connection.execute(sa.text(f"INSERT INTO {rest}"), values)
        return result.scalar() if result.returns_rows else result.lastrowid

    def positions(self):
        """Return the rows that it reads at each request."""
        with self.engine.connect() as connection:
            found = connection.exec_driver_sql(
                "SELECT id, position, pruned_to FROM treeclaim_streams"
            )
            return {row.id: (row.position, row.pruned_to) for row in found}

    def prune(self):
        """Remove all streams that nobody used since yesterday."""
        with self.engine.begin() as connection:
            connection.exec_driver_sql(
                "DELETE FROM treeclaim_streams WHERE used_at < '2026-01-02 00:00:00'"
            )


@pytest.fixture
def earlier(url):
    """A process of the release before."""
    made = EarlierRelease(url)
    yield made
    made.engine.dispose()


def known_by(replica):
    """The names of the providers that a reader knows."""
    with replica.current() as forest:
        return sorted(record.name for record in forest.records())


def create(store, name):
    """Make a provider."""
    store.write(providers.create, uuid=name, name=name, parent_uuid=None)


def test_a_process_of_the_release_before_goes_on_beside_new_ones(url, earlier):
    earlier.create(NAMES[0])
    migrate(url, command.upgrade, "head")
    with closing(Store(DatabaseSettings(url))) as store:
        replica = Replica(store)
        assert known_by(replica) == NAMES[:1]
        earlier.create(NAMES[1])
        assert known_by(replica) == NAMES[:2]
        before = earlier.positions()
        create(store, NAMES[2])
        after = earlier.positions()
        assert [after[stream] for stream in after.keys() - before.keys()] == [(1, 0)]
        beside = EarlierRelease(url)
        beside.create(NAMES[3])
        assert beside.stream not in after
        assert known_by(replica) == NAMES[:4]
        beside.engine.dispose()
        # Its pruning leaves the epochs alone.
        earlier.prune()
        assert {position for position, _ in earlier.positions().values()} == {0, 1}
        earlier.create(NAMES[4])
        create(store, NAMES[5])
        assert known_by(replica) == NAMES


def test_rows_stay_and_a_second_attempt_changes_nothing(url, earlier):
    earlier.create(NAMES[0])
    before = earlier.positions()
    migrate(url, command.upgrade, "head")
    migrated = earlier.positions()
    assert migrated.items() >= before.items()
    with earlier.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE treeclaim_alembic_version SET version_num = '0001'")
    migrate(url, command.upgrade, "head")
    assert earlier.positions() == migrated


def test_the_way_back_empties_the_feed_and_a_process_of_the_release_before_begins_anew(
    url, earlier
):
    migrate(url, command.upgrade, "head")
    with closing(Store(DatabaseSettings(url))) as store:
        create(store, NAMES[0])
    migrate(url, command.downgrade, "0001")
    assert earlier.positions() == {}
    earlier.create(NAMES[1])
    assert list(earlier.positions().values()) == [(1, 0)]
    migrate(url, command.upgrade, "head")
    with closing(Store(DatabaseSettings(url))) as store:
        assert known_by(Replica(store)) == NAMES[:2]


def test_tables_of_the_release_before_are_not_worked_on(url):
    with closing(Store(DatabaseSettings(url))) as store:
        with pytest.raises(SchemaRevisionError, match="as an earlier release made them"):
            schema.require_ready(store.engine)
        migrate(url, command.upgrade, "head")
        schema.require_ready(store.engine)
