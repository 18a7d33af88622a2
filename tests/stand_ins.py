# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for databases that speak the language of PostgreSQL or MySQL and mean something else by it.

A proxy before a real server rewrites what clients ask, so that they get the answers, the refusals and the
isolation that CockroachDB, YugabyteDB and TiDB are documented to give. No stand-in shows that the service
works with the real one.
"""

import contextlib
import re
import socket
import struct
import threading
from contextlib import contextmanager

import sqlalchemy as sa

from tests.databases import server_of
from tests.service import schema_on

# Constants are computed before a statement is executed: this one cannot be.
_NOT_SUPPORTED = "array_length(array_remove(ARRAY[[1]], 1), "
_UNKNOWN_SETTINGS = "(array_nulls|jit|transform_null_equals)"
_PROTOCOL = 196_608

NO_ADVISORY_LOCKS = {r"pg_advisory_xact_lock\(": _NOT_SUPPORTED}
"""As earlier releases of YugabyteDB refuse them."""

NO_SUCH_LOCKS = {r"pg_advisory_xact_lock\(": "no_such_function("}
EMPTY_LOCKS = {r"pg_advisory_xact_lock\(": "pg_sleep(0 * "}
"""As in earlier releases of CockroachDB: no such function, or one that does nothing."""

NO_SHARED_LOCKS = {r" FOR KEY SHARE": f" OFFSET {_NOT_SUPPORTED}1)"}

COCKROACHDB = {
    r"\bversion\(\)": "CAST('CockroachDB CCL v26.3.0 (x86_64-pc-linux-gnu, built for tests)' AS TEXT)",
    r"ISOLATION LEVEL (READ COMMITTED|REPEATABLE READ)": "ISOLATION LEVEL SERIALIZABLE",
    rf"current_setting\('{_UNKNOWN_SETTINGS}', true\)": "NULL",
    rf"set_config\('{_UNKNOWN_SETTINGS}'": "set_config('no_such_setting'",
    r"\bINTEGER\b": "BIGINT",
    r"\bSERIAL\b": "BIGSERIAL",
}
"""Every transaction is serializable, integers have 64 bits, and some settings are unknown."""

YUGABYTEDB = {
    r"\bversion\(\)": "CAST('PostgreSQL 15.2-YB-2025.1.0.0-b1 on x86_64, built for tests' AS TEXT)",
    r"yb_get_effective_transaction_isolation_level\(\)": "current_setting('transaction_isolation')",
}
SNAPSHOTS = {r"ISOLATION LEVEL READ COMMITTED": "ISOLATION LEVEL REPEATABLE READ"}
"""What YugabyteDB makes of it without yb_enable_read_committed_isolation."""

TIDB_VERSION = "8.0.11-TiDB-v8.5.0"
TIDB = {
    r"SHOW VARIABLES WHERE Variable_name IN \('version', 'wsrep_on'\)": (
        f"SELECT 'version', '{TIDB_VERSION}'"
    ),
    r"SHOW VARIABLES WHERE Variable_name IN \('tx_isolation', .*\)": (
        "SELECT 'tx_isolation', @@tx_isolation UNION ALL SELECT 'tidb_txn_mode', 'pessimistic'"
    ),
    r"\bVERSION\(\)": f"'{TIDB_VERSION}'",
    r"@@transaction_isolation": "@@tx_isolation",
    r"max_execution_time = (\d+)000\b": r"max_statement_time = \1",
    r"(?s).* (LOCK IN SHARE MODE|FOR SHARE)$": (
        "SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = 1235, MESSAGE_TEXT = 'only noop implementation'"
    ),
}
OPTIMISTIC = {r"'pessimistic'": "'optimistic'"}


class StandIn:
    """A proxy that rewrites what is asked by pairs of an expression and what stands in its place.

    Attributes:
        port: Its own.
    """

    def __init__(self, port, rewrites):
        self._target = port
        self._rewrites = [(re.compile(asked), told) for asked, told in rewrites.items()]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open = []
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """End all connections."""
        for line in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def rewritten(self, sql):
        """The bytes of a statement as the server is to get it; SQLAlchemy's of its catalogue stay."""
        text = sql.decode()
        if "pg_catalog" in text:
            return sql
        for asked, told in self._rewrites:
            text = asked.sub(told, text)
        return text.encode()

    def ask(self, client, server):
        """Pass on what a client says."""
        raise NotImplementedError

    def tell(self, server, client):
        """Pass on what the server says."""
        while data := server.recv(65536):
            client.sendall(data)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                for line in (client, server):
                    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for passing, ends in ((self.ask, (client, server)), (self.tell, (server, client))):
                    threading.Thread(target=_pass, args=(passing, *ends), daemon=True).start()


def _pass(passing, source, target):
    with contextlib.suppress(OSError, EOFError):
        passing(source, target)
    for line in (source, target):
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)


def _exactly(line, count):
    data = b""
    while len(data) < count:
        more = line.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


class PostgresqlStandIn(StandIn):
    """Rewrites simple queries, and those that are prepared."""

    def ask(self, client, server):
        """Pass on the messages of a client: first those without a type, then the others."""
        code = None
        while code != _PROTOCOL:
            length = _exactly(client, 4)
            body = _exactly(client, struct.unpack("!i", length)[0] - 4)
            (code,) = struct.unpack("!i", body[:4])
            server.sendall(length + body)
        while True:
            kind = _exactly(client, 1)
            body = _exactly(client, struct.unpack("!i", _exactly(client, 4))[0] - 4)
            if kind == b"Q":
                body = self.rewritten(body[:-1]) + b"\0"
            elif kind == b"P":
                name, sql, types = body.split(b"\0", 2)
                body = b"\0".join((name, self.rewritten(sql), types))
            server.sendall(kind + struct.pack("!i", len(body) + 4) + body)


class MysqlStandIn(StandIn):
    """Rewrites queries, and the version in the server's greeting."""

    def ask(self, client, server):
        """Pass on the packets of a client; a command is the first one of its sequence."""
        while True:
            number, body = _packet(client)
            if number == 0 and body[:1] == b"\x03":
                body = body[:1] + self.rewritten(body[1:])
            server.sendall(_as_packet(number, body))

    def tell(self, server, client):
        """Pass on what the server says, under another version."""
        number, body = _packet(server)
        _, rest = body[1:].split(b"\0", 1)
        client.sendall(_as_packet(number, body[:1] + TIDB_VERSION.encode() + b"\0" + rest))
        super().tell(server, client)


def _packet(line):
    head = _exactly(line, 4)
    return head[3], _exactly(line, int.from_bytes(head[:3], "little"))


def _as_packet(number, body):
    return len(body).to_bytes(3, "little") + bytes((number,)) + body


@contextmanager
def standing_in(url, rewrites):
    """The URL of a database by way of a stand-in."""
    given = sa.make_url(url)
    kind = PostgresqlStandIn if given.get_backend_name() == "postgresql" else MysqlStandIn
    proxy = kind(given.port, rewrites)
    try:
        yield given.set(port=proxy.port).render_as_string(hide_password=False)
    finally:
        proxy.close()


@contextmanager
def database_of(kind, rewrites, *, prepare=schema_on, ids=None):
    """The URL of a database of a kind of server by way of a stand-in, with its schema.

    Args:
        kind: Of the server.
        rewrites: Of the stand-in.
        prepare: Makes it ready, when the schema is there.
        ids: An expression by which ids are drawn, of a number that rises; None for that number.
    """
    with server_of(kind).database(None) as direct, standing_in(direct, rewrites) as url:
        if kind == "postgresql":
            _set_as_usual(direct)
        schema_on(url)
        if ids is not None:
            _draw_ids_by(direct, ids)
        prepare(url)
        yield url


UP_AND_DOWN = "{0} * 1103515245 % 2147483647"
"""Ids that jump, and go back again and again."""

ROW_IDS = f"({UP_AND_DOWN}) * 4294967296 + {{0}} % 2"
"""The same of 63 bits."""


def _set_as_usual(url):
    """Set what nobody sets who cannot: the servers of the tests are set as unlike it as they may be."""
    engine = sa.create_engine(f"{url}?client_encoding=utf8")
    name = sa.make_url(url).database
    with engine.begin() as connection:
        for setting in ("array_nulls = on", "transform_null_equals = off", "jit = off"):
            connection.execute(sa.text(f"ALTER DATABASE {name} SET {setting}"))
    engine.dispose()


def _draw_ids_by(url, ids):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        columns = sa.text(
            "SELECT table_name, column_name, column_default FROM information_schema.columns "
            "WHERE column_default LIKE 'nextval%'"
        )
        for table, column, default in connection.execute(columns).all():
            drawn = ids.format(default)
            change = f"ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT {drawn}"
            connection.execute(sa.text(change.replace(":", "\\:")))
    engine.dispose()
