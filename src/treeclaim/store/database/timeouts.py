# SPDX-License-Identifier: Apache-2.0
"""All timeouts of waits for the database, each with its reason.

They are ordered: a lock times out before its statement, a statement before the read timeout of its
connection. The first timeout of a wait is therefore the most specific one. `docs/operate.md` lists
them in one table, "Waits and their limits".
"""

from dataclasses import dataclass, replace

POOL_SECONDS = 10
"""For a connection of the pool, if `pool_timeout` is not set. By default a process has more connections
than threads, so a thread waits only if all connections hang."""

SILENCE_MARGIN = 3
"""Seconds past the longest statement after which a silent server counts as lost. The server cancels
the statement before that; the margin is for the network."""

LOAD_SILENCE = 120
"""Seconds without a byte during a load of everything: the database may sort all rows before the first."""

PROBE_SECONDS = 10
"""For a poll of the feed, and for the load of a few changed providers. They read few rows and wait for
no lock."""

UNFAIR = 3
"""Factor of a writer's wait on SQLite. Its writers do not queue: each polls ten times a second, and the
first to poll is next. Under 32 busy clients most poll 10 times, and one in 10,000 polls 200 times."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The timeouts that an operator can set, in seconds."""

    connect: int = 5
    """To connect and log in to each server. A server in the same cloud needs milliseconds, a loaded one
    seconds."""
    lock: int = 10
    """For one lock. Claims on one shared pool wait for some hundredths of a second each. A longer wait has
    another cause, such as a stopped process or an interactive session."""
    statement: int = 30
    """For one statement of a request. Most need milliseconds; the sums over a large project, seconds."""
    load: int = 600
    """For one statement of a load or of maintenance: a million providers need a minute."""
    write: int = 30
    """For all attempts of a write together; no statement begins later. Clients wait a minute."""
    idle: int = 10
    """Between two statements of a transaction before the server ends it. Transactions pause for
    milliseconds; this timeout releases the locks of a stopped process."""
    tcp: int = 15
    """Without an acknowledgement from the other machine until its connections are closed."""

    @property
    def silence(self) -> int:
        """Seconds without a byte after which the server counts as lost."""
        return max(self.statement, self.lock) + SILENCE_MARGIN

    @property
    def load_silence(self) -> int:
        """Seconds of silence during a load of everything."""
        return max(self.silence, min(self.load + SILENCE_MARGIN, LOAD_SILENCE))

    @property
    def keepalive(self) -> int:
        """Idle seconds before the first keepalive probe, and between two of them."""
        return max(1, self.tcp // 3)

    @property
    def sqlite_lock(self) -> int:
        """Seconds for the one write lock of SQLite."""
        return UNFAIR * self.lock

    def extended(self) -> "Timeouts":
        """Return the timeouts of a load of everything."""
        return replace(self, statement=max(self.statement, self.load), idle=self.load)


TIMEOUTS_OPTION = "treeclaim_waits"
"""The execution option with the timeouts of an engine."""
