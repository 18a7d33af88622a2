# SPDX-License-Identifier: Apache-2.0
"""Which of the abilities that the store relies on a database has.

What all databases of a kind have in common is known by their kind; each connection is asked for the rest as
it is made, by a statement that it begins with anyway. `connecting/requirements.py` refuses servers without what the
store cannot do without.
"""

from dataclasses import dataclass

from sqlalchemy.engine import Connection
from sqlalchemy.pool import ConnectionPoolEntry

_ABILITIES = "treeclaim_abilities"
"""Key in a connection's `info`: what its server can do."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a database can do.

    Attributes:
        server: What it calls itself, with its version.
        is_server: Whether it is a process of its own, whose sessions may outlive their connections. If
            not, a query is a transaction, and a connection either works at once or never.
        is_shared_by_poolers: Whether a pooler may lend its sessions for single transactions.
        shares_row_locks: Whether several transactions can lock a row against its deletion. If not, they
            wait for each other.
        locks_in_order: Whether a query that locks rows does so in the order that it asks for. If not, it
            does as it reads them.
        locks_hold_everywhere: Whether a row lock holds against all transactions. If not, those of other
            nodes meet it when they commit, and only where both have written.
        compiles_plans: Whether the server may compile the plan of a statement, unless it is told not to.
        gives_ids_again: Whether the id of a row that is gone may be that of a new one. Nothing relies on
            ids that rise.
        holds_nul, holds_all_planes: Whether text may have the character NUL, and those beyond the basic
            plane of Unicode.
    """

    server: str
    is_server: bool = True
    is_shared_by_poolers: bool = False
    shares_row_locks: bool = True
    locks_in_order: bool = True
    locks_hold_everywhere: bool = True
    compiles_plans: bool = True
    gives_ids_again: bool = False
    holds_nul: bool = True
    holds_all_planes: bool = True


def note_abilities(record: ConnectionPoolEntry, found: Abilities) -> None:
    """Note what the server of a new connection can do."""
    record.info[_ABILITIES] = found


def asked_abilities(connection: Connection) -> Abilities | None:
    """Return what the server of a connection can do; None if it was not asked."""
    return connection.info.get(_ABILITIES)
