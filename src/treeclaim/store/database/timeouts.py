# SPDX-License-Identifier: Apache-2.0
"""All timeouts of waits for the database, each with its reason (docs/operate.md, "Waits and their limits").

A lock times out before its statement, and a statement before the read timeout of its connection, so that
the most specific timeout comes first.
"""

from dataclasses import dataclass, replace

MILLISECONDS = 1000

POOL_SECONDS = 10
"""For a connection of the pool, if `pool_timeout` is not set. By default a process has more connections
than threads, so a thread waits only if all connections hang."""

KEEPALIVE_PROBES = 2
"""TCP keepalive probes without an answer; with the idle time before them they take `Timeouts.tcp`."""

SILENCE_MARGIN = 3
"""Seconds between the statement timeout of the server and the read timeout of the client: a margin for the network."""

LOAD_SILENCE = 120
"""Read timeout of a load of everything: the database may sort all rows before it sends the first."""

PROBE_SECONDS = 10
"""For a poll of the feed and a load of a few changed providers, which read few rows and wait for no lock."""

SQLITE_LOCK_FACTOR = 3
"""Multiplies the lock timeout on SQLite, whose writers do not queue: each polls ten times a second. With 32 busy
clients, most writers poll 10 times, and one in 10,000 polls 200 times."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The timeouts that an operator can set, in seconds."""

    connect: int = 5
    """For connecting and logging in. A server in the same cloud needs milliseconds, a loaded server seconds."""
    lock: int = 10
    """For one lock. Claims on a shared pool wait for some 10 ms each. A longer wait has another cause, such as a
    stopped process or an interactive session."""
    statement: int = 30
    """For one statement of a request. Most take milliseconds; sums over a large project take seconds."""
    load: int = 600
    """For one statement of a load or of maintenance. A million providers take a minute."""
    write: int = 30
    """For all attempts of a write together; no statement begins later. Clients time out after a minute."""
    idle: int = 10
    """Between two statements of a transaction before the server ends it and releases its locks. Only the transaction
    of a stopped process pauses for more than milliseconds."""
    tcp: int = 15
    """Without an acknowledgement from the server's machine before a connection is closed."""

    @property
    def silence(self) -> int:
        """Read timeout of a connection, in seconds."""
        return max(self.statement, self.lock) + SILENCE_MARGIN

    @property
    def load_silence(self) -> int:
        """Read timeout during a load of everything, in seconds."""
        return max(self.silence, min(self.load + SILENCE_MARGIN, LOAD_SILENCE))

    @property
    def keepalive(self) -> int:
        """Idle seconds before the first keepalive probe, and between two of them."""
        return max(1, self.tcp // (KEEPALIVE_PROBES + 1))

    @property
    def sqlite_lock(self) -> int:
        """Timeout for the write lock of SQLite, in seconds."""
        return SQLITE_LOCK_FACTOR * self.lock

    def make_extended(self) -> "Timeouts":
        """Return the timeouts of a load of everything."""
        return replace(self, statement=max(self.statement, self.load), idle=self.load)


TIMEOUTS_OPTION = "treeclaim_timeouts"
"""The execution option with the timeouts of an engine."""
