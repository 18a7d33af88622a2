# SPDX-License-Identifier: Apache-2.0
"""Real database servers for tests: started once, on free loopback ports, in temporary folders."""

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest
import sqlalchemy as sa

from tests.ports import free_port
from tests.resources import needs, program_of, require

KINDS = ("sqlite", "postgresql", "mariadb")
EACH_SERVER = [pytest.param(kind, marks=needs(kind)) for kind in KINDS[1:]]
EACH_DATABASE = [KINDS[0], *EACH_SERVER]
"""Parameters of a test that runs on each database; servers are requested as resources."""

_START_SECONDS = 240
"""A cluster node that copies everything from another node takes half a minute on a busy machine."""

_PLENTY = 8_000_000_000
"""Bytes of free memory that are ample for the files of all servers of a run."""


def server_of(kind: str) -> Any:
    """Return the shared server of a kind; the first call starts it."""
    if kind != "sqlite":
        require(kind)
    return _shared_server_of(kind)


@cache
def _shared_server_of(kind):
    return new_server_of(kind)


def new_server_of(kind):
    """Return a new server of a kind, for the caller alone."""
    return {"sqlite": Sqlite, "postgresql": Postgresql, "mariadb": Mariadb}[kind]()


@contextmanager
def empty_database(kind, folder):
    """Yield the URL of an empty database on the shared server of a kind."""
    with server_of(kind).database(folder) as url:
        yield url


@contextmanager
def filled_database(kind, fill, folder):
    """Yield the URL of a copy of the database that `fill(url)` fills."""
    with server_of(kind).filled(fill, folder) as url:
        yield url


class Models:
    """Template databases, one for each fill function; recreated after a while.

    Rows contain the time of their write, so a template must not be much older than the test.
    """

    LIFE = 1200.0
    """Seconds."""

    def __init__(self, make):
        self._make = make
        self._made = {}

    def of(self, fill):
        """Return the template of a fill function."""
        begun, model = self._made.get(fill, (-self.LIFE, None))
        if time.monotonic() - begun >= self.LIFE:
            begun, model = time.monotonic(), self._make(fill)
            self._made[fill] = begun, model
        return model


class Sqlite:
    """SQLite, with a file for each database."""

    def __init__(self):
        self._models = Models(self._model_of)

    @contextmanager
    def database(self, folder):
        """Yield the URL of a new database."""
        yield f"sqlite:///{folder}/placement.db"

    def _model_of(self, fill):
        model = Path(tempfile.mkdtemp(prefix="treeclaim-tests-")) / "model.db"
        fill(f"sqlite:///{model}")
        return model

    @contextmanager
    def filled(self, fill, folder):
        """Yield the URL of a copy of the database that `fill(url)` fills once."""
        shutil.copyfile(self._models.of(fill), f"{folder}/placement.db")
        with self.database(folder) as url:
            yield url


def _memory():
    """The folder of the memory file system if it has much space; otherwise None, for the usual folder.

    Creating the schema waits for the disk two dozen times. Files in memory also survive a killed server process.
    """
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        return None
    free = min(shutil.disk_usage(shared).free, psutil.virtual_memory().available)
    return shared if free > _PLENTY else None


class _Server:
    """A server process in which tests create and drop databases."""

    resource = ""
    """The required resource, a name in `tests.resources`."""
    user = ""
    """Account of the server if the tests run as root, which servers refuse."""
    first_database = ""
    """A database that exists from the start; connections to it administer the server."""
    create = "CREATE DATABASE {name}"
    """The statement that creates a database."""
    drop = ""
    """The statement that drops a database in spite of connections."""
    end = signal.SIGTERM
    """The signal that stops the server in spite of connections."""

    def __init__(self):
        # Checked before an account or a folder is touched.
        require(self.resource)
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="treeclaim-server-", dir=_memory()))
        self.account = self.user if os.geteuid() == 0 else None
        if self.account:
            shutil.chown(self.folder, self.account)
        self.process = None
        self._models = Models(self.model_of)
        atexit.register(self.stop)
        self.prepare()
        self.start()

    def prepare(self):
        """Create the files for the first start."""

    def start(self):
        """Start the server, and wait until it answers."""
        raise NotImplementedError

    def url(self, database):
        raise NotImplementedError

    def kill(self):
        """Kill the server, as a power cut would."""
        self.process.kill()
        self.process.wait(timeout=30)

    def run(self, *command):
        """Run a program as the server's account; return its output."""
        result = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
            **self._identity(),
        )
        if result.returncode != 0:
            raise RuntimeError(f"{command[0]} ended with {result.returncode}:\n{result.stdout}")
        return result.stdout

    def spawn(self, *command):
        """Start the server, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **self._identity())
        deadline = time.monotonic() + _START_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text(errors="replace"))
            time.sleep(0.05)

    def _identity(self):
        if not self.account:
            return {"cwd": self.folder}
        entry = pwd.getpwnam(self.account)
        return {
            "cwd": self.folder,
            "user": entry.pw_uid,
            "group": entry.pw_gid,
            "extra_groups": [],
        }

    def administered(self):
        """The URL for administration."""
        return self.url(self.first_database)

    def answers(self):
        """Return whether the server accepts connections."""
        try:
            with self._administration.connect():
                return True
        except sa.exc.DBAPIError:
            return False

    def stop(self):
        """Stop the server and delete its folder."""
        if self.process is not None:
            self.process.send_signal(self.end)
            self.process.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def database(self, _folder):
        """Yield the URL of a new, empty database."""
        with self._made(self.create) as name:
            yield self.url(name)

    @contextmanager
    def filled(self, fill, _folder):
        """Yield the URL of a copy of the database that `fill(url)` fills once; a copy takes a third of the time."""
        with self.copy(self._models.of(fill)) as url:
            yield url

    def model_of(self, fill):
        """Return a template for `copy`."""
        raise NotImplementedError

    def copy(self, model):
        """Yield the URL of a copy of a template."""
        raise NotImplementedError

    @contextmanager
    def _made(self, statement):
        """Create a database by a statement; yield its name."""
        name = _new_name()
        self._administer(statement.format(name=name))
        try:
            yield name
        finally:
            self._administer(self.drop.format(name=name))

    @cached_property
    def _administration(self):
        """An engine without a pool, which reads the server's capabilities only once."""
        return sa.create_engine(
            self.administered(), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
        )

    def _administer(self, statement):
        with self._administration.connect() as connection:
            connection.exec_driver_sql(statement)


def _new_name():
    return f"test_{uuid.uuid4().hex[:12]}"


POSTGRESQL_SETTINGS = {
    "array_nulls": "off",
    "bytea_output": "escape",
    "client_encoding": "LATIN1",
    "datestyle": "German, DMY",
    "extra_float_digits": "-3",
    "intervalstyle": "sql_standard",
    "standard_conforming_strings": "off",
    "timezone": "Pacific/Kiritimati",
    "transform_null_equals": "on",
}
MARIADB_SETTINGS = {
    "character-set-server": "latin1",
    "default-time-zone": "+13:00",
    "sql-mode": "ANSI_QUOTES,EMPTY_STRING_IS_NULL,HIGH_NOT_PRECEDENCE,IGNORE_SPACE,"
    "NO_BACKSLASH_ESCAPES,NO_UNSIGNED_SUBTRACTION,ONLY_FULL_GROUP_BY,PIPES_AS_CONCAT",
}
"""Unusual settings: the service must set every option that it depends on."""


class Postgresql(_Server):
    """The newest installed PostgreSQL, initialized as under LANG=C."""

    resource = "postgresql"
    user = "postgres"
    end = signal.SIGINT
    first_database = "postgres"
    create = "CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0"
    drop = "DROP DATABASE {name} WITH (FORCE)"

    def prepare(self):
        """Make the data folder."""
        programs = newest_postgresql()
        data = str(self.folder / "data")
        initdb = (str(programs / "initdb"), "-D", data, "-U", "postgres", "-A", "trust")
        self.run(*initdb, "--encoding=SQL_ASCII", "--no-locale")

    def start(self, *options):
        """Start the server with further options."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            "max_connections": 200,
        }
        self.spawn(
            str(newest_postgresql() / "postgres"),
            f"-D{self.folder / 'data'}",
            *(f"-c{name}={value}" for name, value in (settings | POSTGRESQL_SETTINGS).items()),
            *options,
        )

    def kill(self):
        """Kill all server processes at once, as a power cut would.

        Processes that outlive the first one would show clients a commit that no standby has: a commit that waits
        for a standby becomes visible when the waiting process ends.
        """
        self.process.send_signal(signal.SIGSTOP)
        for child in psutil.Process(self.process.pid).children(recursive=True):
            child.kill()
        super().kill()

    def url(self, name):
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{name}"

    def model_of(self, fill):
        """Return the name of a filled database without connections."""
        name = _new_name()
        self._administer(self.create.format(name=name))
        fill(self.url(name))
        return name

    @contextmanager
    def copy(self, model):
        with self._made(f"CREATE DATABASE {{name}} TEMPLATE {model}") as name:
            yield self.url(name)

    def administered(self):
        """The first database has the encoding SQL_ASCII, so the client sets one."""
        return f"{self.url(self.first_database)}?client_encoding=utf8"


class Pgbouncer(Postgresql):
    """PgBouncer in front of a PostgreSQL server, with few sessions."""

    resource = "pgbouncer"
    end = signal.SIGTERM

    def __init__(self, server, mode):
        self._server = server
        self._mode = mode
        super().__init__()

    def prepare(self):
        """Write its configuration."""
        users = self.folder / "users"
        users.write_text('"postgres" ""\n')
        (self.folder / "configuration").write_text(
            f"""[databases]
* = host=127.0.0.1 port={self._server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = {self._mode}
default_pool_size = {4 if self._mode == "transaction" else 60}
"""
        )

    def start(self, *options):
        """Start it, and wait until it forwards requests."""
        self.spawn(program_of("pgbouncer"), *options, str(self.folder / "configuration"))


class Standby(Postgresql):
    """A standby of a PostgreSQL server."""

    def __init__(self, primary):
        self._primary = primary
        super().__init__()

    def prepare(self):
        """Copy the primary."""
        program = str(newest_postgresql() / "pg_basebackup")
        source = ("--host=127.0.0.1", f"--port={self._primary.port}", "--username=postgres")
        target = f"--pgdata={self.folder / 'data'}"
        self.run(program, *source, target, "--write-recovery-conf", "--checkpoint=fast")

    def promote(self):
        self._administer("SELECT pg_promote()")


class Mariadb(_Server):
    """MariaDB."""

    resource = "mariadb"
    user = "mysql"
    first_database = "mysql"
    drop = "DROP DATABASE {name}"

    def prepare(self):
        """Create the data folder and a folder for temporary files.

        A starting server deletes all temporary tables in its temporary folder, so servers must not share one.
        """
        temporary = self.folder / "temporary"
        temporary.mkdir()
        if self.account:
            shutil.chown(temporary, self.account)
        self.run(
            program_of("mariadb-install-db"),
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--tmpdir={temporary}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        )

    def start(self, *options):
        """Start the server with further options."""
        self.spawn(
            program_of("mariadbd"),
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--tmpdir={self.folder / 'temporary'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            "--max-connections=300",
            "--innodb-lock-wait-timeout=5",
            *(f"--{name}={value}" for name, value in MARIADB_SETTINGS.items()),
            *options,
        )

    def url(self, name):
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/{name}?charset=utf8"

    def model_of(self, fill):
        """Return the statements that recreate the contents of a database."""
        with self._made(self.create) as name:
            fill(self.url(name))
            return self.run(
                *(program_of("mariadb-dump"), "--no-defaults", "--host=127.0.0.1", "--user=root"),
                *(f"--port={self.port}", "--compact", "--default-character-set=utf8mb4", name),
            )

    @contextmanager
    def copy(self, model):
        """Send all statements at once."""
        with self._made(self.create) as name:
            connection = pymysql.connect(
                host="127.0.0.1",
                port=self.port,
                user="root",
                database=name,
                charset="utf8mb4",
                client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS,
                init_command="SET foreign_key_checks = 0, sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
            )
            with connection, connection.cursor() as cursor:
                cursor.execute(model)
                while cursor.nextset():
                    pass
                connection.commit()
            yield self.url(name)


class GaleraNode(Mariadb):
    """A node of a Galera cluster on this machine; the first node creates the cluster."""

    resource = "galera"

    def __init__(self, number, ports):
        self._number = number
        self._ports = ports
        self._transfer_ports = free_port(), free_port()
        super().__init__()

    def start(self, *options):
        """Join the cluster, or create it if no other node runs."""
        peers = [port for port in self._ports if port != self._ports[self._number]]
        alive = any(_is_open(peer) for peer in peers)
        members = ",".join(f"127.0.0.1:{peer}" for peer in peers) if alive else ""
        port = self._ports[self._number]
        whole, missed = self._transfer_ports
        provider = {
            "gmcast.listen_addr": f"tcp://127.0.0.1:{port}",
            "ist.recv_addr": f"127.0.0.1:{missed}",
            "gcache.size": "32M",
            # Longer than any pause on a busy machine: two nodes that suspect each other lose their quorum.
            "evs.suspect_timeout": "PT8S",
            "evs.inactive_timeout": "PT30S",
            # Each start names the members of the cluster.
            "pc.recovery": "false",
        }
        super().start(
            "--wsrep-on=ON",
            f"--wsrep-provider={galera_library()}",
            "--wsrep-cluster-name=treeclaim",
            f"--wsrep-cluster-address=gcomm://{members}",
            f"--wsrep-node-name=node{self._number}",
            f"--wsrep-node-address=127.0.0.1:{port}",
            "--wsrep-provider-options=" + ";".join(f"{a}={b}" for a, b in provider.items()),
            "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=127.0.0.1:{whole}",
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
            "--innodb-buffer-pool-size=64M",
            *options,
        )

    def answers(self):
        """Return whether the node is synchronized; before that it may refuse statements."""
        try:
            return super().answers() and self.status("wsrep_local_state_comment") == "Synced"
        except sa.exc.DBAPIError:
            return False

    def status(self, name):
        """The value of a status variable."""
        with self._administration.connect() as connection:
            return connection.exec_driver_sql(f"SHOW STATUS LIKE '{name}'").first()[1]


def galera_library():
    """The path of Galera's library."""
    return next(Path("/usr/lib").rglob("libgalera_smm.so"))


def _is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def newest_postgresql():
    """The folder of the programs of the newest PostgreSQL."""
    return max(Path("/usr/lib/postgresql").glob("*/bin/initdb")).parent
