# SPDX-License-Identifier: Apache-2.0
"""How long anybody waits for the database: every limit in one place, with its reason.

The limits stand in each other's order: a lock is given up before its statement is, a statement
before its silence is taken for a lost server. So the one that ends a wait says the most of why.
`docs/operate.md` has all of them in one table, "Waits and their limits".
"""

from dataclasses import dataclass, replace

CONNECT_SECONDS = 5
"""To be let in. A server in the same cloud takes milliseconds; a loaded one seconds."""

LOCK_SECONDS = 10
"""For a lock. Claims on one shared pool queue up for some hundredths of a second each, so one that
waits this long waits for somebody outside: a frozen process, a person's session."""

STATEMENT_SECONDS = 30
"""For one statement of a request. They take milliseconds; the sums over a large project, seconds."""

LOAD_SECONDS = 600
"""For one statement that reads everything, or of upkeep: a million providers take a minute."""

WRITE_SECONDS = 30
"""For all attempts of a write together; no statement of it begins later. Clients wait a minute."""

IDLE_SECONDS = 10
"""That a transaction may stand still between two statements before its server ends it. Between
ours lie milliseconds of work; a process that was stopped frees what it had locked after this."""

TCP_SECONDS = 15
"""Without an acknowledgement of the other machine, until its connections are given up."""

POOL_SECONDS = 10
"""For a connection of the pool, where `pool_timeout` says nothing. There are more of them than
threads by default, so nobody waits unless they are all hung up."""

SILENCE_MARGIN = 3
"""Seconds past the longest statement after which a server without a word is taken for lost. It
would have ended the statement itself and said so; this is for its way here."""

LOAD_SILENCE = 120
"""Seconds without a byte while everything is read: the first row may need a sort of everything,
and the others follow at once."""

PROBE_SECONDS = 10
"""For the answer whether anything is new. It reads a few small rows and waits for no lock, so
one that takes longer will not come."""

UNFAIR = 3
"""How many times longer a writer waits on SQLite, whose writers do not queue up: each looks again
ten times a second, and who looks first is next. Under 32 busy clients most look 10 times and one
in 10,000 looks 200 times."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The limits that an operator can set, in seconds; see the constants for reasons.

    Attributes:
        connect: To be let in, for each server named.
        lock: For one lock.
        statement: For one statement.
        load: For one statement that reads everything, or of upkeep.
        write: For all attempts of a write.
        idle: Between two statements of a transaction.
        tcp: Without an acknowledgement of the other machine.
    """

    connect: int = CONNECT_SECONDS
    lock: int = LOCK_SECONDS
    statement: int = STATEMENT_SECONDS
    load: int = LOAD_SECONDS
    write: int = WRITE_SECONDS
    idle: int = IDLE_SECONDS
    tcp: int = TCP_SECONDS

    @property
    def silence(self) -> int:
        """Seconds without a byte after which the server is taken for lost."""
        return max(self.statement, self.lock) + SILENCE_MARGIN

    @property
    def load_silence(self) -> int:
        """The same, while everything is read."""
        return max(self.silence, min(self.load + SILENCE_MARGIN, LOAD_SILENCE))

    @property
    def keepalive(self) -> int:
        """Seconds of idleness before a connection is asked for a sign, and between two askings."""
        return max(1, self.tcp // 3)

    @property
    def sqlite_lock(self) -> int:
        """Seconds for the one write lock of SQLite."""
        return UNFAIR * self.lock

    def unhurried(self) -> "Waits":
        """Return the limits of work that reads everything."""
        return replace(self, statement=max(self.statement, self.load), idle=self.load)


WAITS_OPTION = "treeclaim_waits"
"""The execution option in which an engine carries its limits."""
