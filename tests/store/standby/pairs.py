# SPDX-License-Identifier: Apache-2.0
"""A primary and a standby that follows it, both real servers; what is written and read there."""

import uuid
from contextlib import contextmanager

import sqlalchemy as sa

from tests.databases import new_primary_of
from tests.servers import eventually
from tests.service import schema_on
from treeclaim import metrics
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.inventory import Inventory
from treeclaim.store import DatabaseSettings
from treeclaim.store.operations.providers import inventories, providers
from treeclaim.store.reading import usages

_PORT = {"postgresql": "SELECT inet_server_port()", "mysql": "SELECT @@port"}


class Pair:
    """A primary with a standby, and a database on both."""

    def __init__(self, kind):
        self.kind = kind
        self.primary = new_primary_of(kind)
        try:
            self.standby = self.primary.standby()
        except BaseException:
            self.primary.stop()
            raise

    def stop(self):
        """End both."""
        self.standby.stop()
        self.primary.stop()

    @contextmanager
    def database(self):
        """The settings for a new database with schema and standard names."""
        with self.primary._made(self.primary.create) as name:
            schema_on(self.primary.url(name))
            settings = DatabaseSettings(self.primary.url(name), standby_url=self.standby.url(name))
            self.await_standby(settings)
            yield settings

    def await_standby(self, settings):
        """Wait until the standby has all that the primary has."""
        wanted = rows_of(settings.url, STREAMS)
        eventually(lambda: self._has(settings, wanted), "the standby follows")

    def _has(self, settings, wanted):
        try:
            return rows_of(settings.standby_url, STREAMS) == wanted
        except sa.exc.DBAPIError:
            return False


STREAMS = "SELECT identity, position FROM treeclaim_streams ORDER BY identity"


def rows_of(url, sql):
    """What a server says."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(sql)]


def host(store, name=""):
    """Make a host; return its uuid."""
    made = str(uuid.uuid4())
    store.write(providers.create, uuid=made, name=name or made, parent_uuid=None)
    stock = {"VCPU": Inventory(100)}
    store.write(inventories.replace_all, made, 0, stock, zero_capacity_allowed=False)
    return made


def claim(store, provider, units=1, project="project"):
    """Claim of a host for a new consumer; return its uuid."""
    consumer = str(uuid.uuid4())
    claims = [ConsumerClaim(consumer, {provider: {"VCPU": units}}, project, "user", None, "I")]
    store.replace_allocations(claims)
    return consumer


@contextmanager
def statements_at_primary(store):
    """What a store sends to the primary by SQLAlchemy, which its looks do not pass."""
    sent = []

    def note(_connection, _cursor, statement, *_):
        sent.append(statement)

    sa.event.listen(store.engine, "before_cursor_execute", note)
    yield sent
    sa.event.remove(store.engine, "before_cursor_execute", note)


class Reads:
    """How many reads each server has answered since this was made."""

    def __init__(self):
        self._before = self._now()

    def _now(self):
        return {
            server: metrics.STANDBY_READS.labels(server)._value.get()
            for server in ("standby", "primary")
        }

    def by(self, server):
        """Return the number of one of them."""
        return self._now()[server] - self._before[server]


def port_of(transaction):
    """The port of the server that a transaction is on."""
    return transaction.scalar(sa.text(_PORT[transaction.connection.dialect.name]))


def port_read(store):
    """The port of the server that a read goes to."""
    return store.read_from_standby(port_of)


def used_of(transaction, project):
    """How much VCPU the consumers of a project have."""
    groups = usages.of_project(transaction, project, None)
    return sum(group.resources.get("VCPU", 0) for group in groups)


def used_by(store, project="project"):
    """The same, as a store reads it."""
    return store.read_from_standby(lambda transaction: used_of(transaction, project))
