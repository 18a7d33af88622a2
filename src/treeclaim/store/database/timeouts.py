# SPDX-License-Identifier: Apache-2.0
"""All timeouts of waiting for the database, each with its reason.

They are ordered: a lock times out before its statement does, a statement before the read timeout
of its connection. So the timeout that ends a wait tells the most about the cause. `docs/operate.md`
has all of them in one table, "Waits and their limits".
"""

from dataclasses import dataclass, replace

POOL_SECONDS = 10
"""For a connection of the pool, if `pool_timeout` is not set. By default there are more connections
than threads, so nobody waits unless all of them hang."""

SILENCE_MARGIN = 3
"""Seconds past the longest statement after which a silent server counts as lost. It would have
cancelled the statement and reported it; this is for the network."""

LOAD_SILENCE = 120
"""Seconds without a byte while everything is read: the first row may need a sort of everything,
and the others follow at once."""

PROBE_SECONDS = 10
"""For the query whether anything is new, and that for a few changed providers. They read some rows and
wait for no lock, so an answer that takes longer will not come."""

UNFAIR = 3
"""Factor of a writer's wait on SQLite, whose writers do not queue: each polls ten
times a second, and the first to poll is next. Under 32 busy clients most poll 10 times and one in
10,000 polls 200 times."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The timeouts that an operator can set, in seconds."""

    connect: int = 5
    """To connect and log in, for each server named. A server in the same cloud takes milliseconds; a loaded one
    seconds."""
    lock: int = 10
    """For one lock. Claims on one shared pool queue up for some hundredths of a second each, so one that
    waits this long waits for something else: a frozen process, a session of a person."""
    statement: int = 30
    """For one statement of a request. They take milliseconds; the sums over a large project, seconds."""
    load: int = 600
    """For one statement that reads everything, or of maintenance: a million providers take a minute."""
    write: int = 30
    """For all attempts of a write together; no statement of it begins later. Clients wait a minute."""
    idle: int = 10
    """Between two statements of a transaction before the server ends it. Ours take milliseconds in
    between; this releases the locks of a process that was stopped."""
    tcp: int = 15
    """Without an acknowledgement from the other machine until its connections are closed."""

    @property
    def silence(self) -> int:
        """Seconds without a byte after which the server counts as lost."""
        return max(self.statement, self.lock) + SILENCE_MARGIN

    @property
    def load_silence(self) -> int:
        """Seconds of silence while everything is read."""
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
        """Return the timeouts of work that reads everything."""
        return replace(self, statement=max(self.statement, self.load), idle=self.load)


TIMEOUTS_OPTION = "treeclaim_waits"
"""The execution option in which an engine carries its timeouts."""
