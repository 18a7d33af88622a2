# SPDX-License-Identifier: Apache-2.0
"""The single clock of all processes: that of the database's server.

Machines' clocks differ, and one that is a day ahead would find everything old that others have just
written. So stored times, and the ages of what is stored, follow the server's clock. A
connection asks for it when it is made, and counts on from there by the monotonic clock; it is
replaced after `connection_recycle_time`. SQLite's server is the machine itself.
"""

from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.pool import ConnectionPoolEntry

_CLOCK = "treeclaim_clock"
"""Key in a connection's `info`: the time of its server, naive UTC, when the monotonic clock was 0."""


def set_clock(record: ConnectionPoolEntry, seconds: Any) -> None:
    """Note the present time of a server, in seconds since the epoch."""
    time = datetime.fromtimestamp(float(seconds), UTC).replace(tzinfo=None)
    record.info[_CLOCK] = time - timedelta(seconds=monotonic())


def now_of(connection: Connection) -> datetime:
    """Return the present time of a connection's server, naive UTC, as the tables hold it."""
    origin: datetime | None = connection.info.get(_CLOCK)
    if origin is None:
        return datetime.now(UTC).replace(tzinfo=None)
    return origin + timedelta(seconds=monotonic())
