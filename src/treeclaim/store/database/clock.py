# SPDX-License-Identifier: Apache-2.0
"""The single clock of all processes: that of the database's server.

Machines' clocks differ, and one that is a day ahead would find everything old that others have just
written. So stored times, and the ages of what is stored, follow the server's clock. A
connection asks for it when it is made, and counts on from there by the monotonic clock; it is
replaced after `connection_recycle_time`. SQLite's server is the machine itself.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.pool import ConnectionPoolEntry

_CLOCK = "treeclaim_clock"
"""Key in a connection's `info`: its server's clock."""


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The time of a server's clock.

    Attributes:
        told: Naive UTC.
        at: When, on the monotonic clock of this machine.
    """

    told: datetime
    at: float

    def now(self) -> datetime:
        """Return the time of the server, naive UTC."""
        return self.told + timedelta(seconds=monotonic() - self.at)


def set_clock(record: ConnectionPoolEntry, told: Any) -> None:
    """Note what a server's clock tells at this moment, in seconds since the epoch."""
    time = datetime.fromtimestamp(float(told), UTC).replace(tzinfo=None)
    record.info[_CLOCK] = ServerClock(time, monotonic())


def now_of(connection: Connection) -> datetime:
    """Return the present time of a connection's server, naive UTC, as the tables hold it."""
    clock: ServerClock | None = connection.info.get(_CLOCK)
    return datetime.now(UTC).replace(tzinfo=None) if clock is None else clock.now()
