# SPDX-License-Identifier: Apache-2.0
"""Whether a database can do what the store cannot do without; found by trying it.

Servers that speak the language of PostgreSQL or MySQL accept statements that mean less to them: they lock
nothing, or give another isolation than was asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.connecting.connections import connected, writing
from treeclaim.store.database.connecting.engine import DatabaseSettings, make_engine
from treeclaim.store.database.dialects.systems import abilities_of, system_of
from treeclaim.store.database.failures.kinds import (
    Failure,
    failure_of,
    is_read_only,
    is_unsupported,
    unavailable,
)

_FIT = {"read committed", "serializable"}
"""In the first a statement sees what was committed while the one before waited for a lock; in the second
the transaction fails, and runs again, if it has not seen that. Snapshots do neither: a lock that others
had, and have not written to, would be taken by one that has read the old rows."""

_REMEDIES = {
    "repeatable read": "Start YugabyteDB's tablet servers with yb_enable_read_committed_isolation=true.",
    "optimistic": "SET GLOBAL tidb_txn_mode = 'pessimistic'.",
}
_USE_ANOTHER = "Use a later release of the server, or PostgreSQL or MariaDB."


@dataclass(frozen=True, slots=True)
class Lack:
    """What a database cannot do.

    Attributes:
        text: What is missing, on which server, and what follows.
        remedy: What to do.
    """

    text: str
    remedy: str = _USE_ANOTHER

    @property
    def refusal(self) -> StoreUnavailableError:
        """Return the error for an operator."""
        return StoreUnavailableError(f"{self.text}. {self.remedy}")


def require_able(engine: Engine) -> None:
    """Require what every write relies on; one statement of a server.

    Raises:
        StoreUnavailableError: if it is missing, or the database does not answer.
    """
    try:
        for lack in _of_transactions(engine):
            raise lack.refusal
    except SQLAlchemyError as error:
        raise unavailable(error) from error


def require_exclusion(settings: DatabaseSettings) -> None:
    """Require the lock under which the schema is made.

    Raises:
        StoreUnavailableError: if it keeps nobody away, or the database does not answer.
    """
    try:
        for lack in _of_exclusion(settings):
            raise lack.refusal
    except SQLAlchemyError as error:
        raise unavailable(error) from error


def lacks(settings: DatabaseSettings) -> list[Lack]:
    """Return all that a database cannot do; nothing is written.

    Raises:
        SQLAlchemyError: if the database does not answer.
    """
    engine = make_engine(settings)
    if not system_of(engine).ABILITIES.is_server:
        return []
    try:
        return [*_of_transactions(engine), *_of_exclusion(settings)]
    finally:
        engine.dispose()


def _of_transactions(engine: Engine) -> Iterator[Lack]:
    system = system_of(engine)
    with connected(writing(engine)) as connection:
        server = abilities_of(connection).server
        try:
            isolation = system.isolation(connection)
        except DBAPIError as error:
            if is_unsupported(error.orig):
                yield Lack(
                    f"{server} has no locks of rows that transactions share: what one relies on could "
                    "be deleted by another"
                )
            # A server that takes no writes is not asked how it does them.
            elif not is_read_only(error.orig):
                raise
            return
    if isolation not in _FIT:
        yield Lack(
            f"{server} gives transactions that write the isolation {isolation}: they would not see "
            "what others have committed while they waited for a lock",
            _REMEDIES.get(isolation, _USE_ANOTHER),
        )


def _of_exclusion(settings: DatabaseSettings) -> Iterator[Lack]:
    engine = make_engine(replace(settings, max_pool_size=None, max_overflow=None))
    if not system_of(engine).ABILITIES.is_server:
        return
    try:
        with connected(writing(engine)) as first, connected(writing(engine)) as second:
            server = abilities_of(first).server
            if _takes_lock(first) and _takes_lock(second):
                yield Lack(
                    f"{server} gives the lock under which the schema is made to two at once"
                )
    except DBAPIError as error:
        if not is_unsupported(error.orig):
            raise
        yield Lack(
            f"{server} has no lock under which the schema could be made by one process alone"
        )
    finally:
        engine.dispose()


def _takes_lock(connection: Connection) -> bool:
    """Tell whether a connection gets the lock under which the schema is made, unless others have it."""
    try:
        return system_of(connection).take_lock(connection, 0)
    except DBAPIError as error:
        if failure_of(error) is Failure.LOCK_TIMEOUT:
            return False
        raise
