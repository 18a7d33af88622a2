# SPDX-License-Identifier: Apache-2.0
"""Checks whether a database can be taken over, without writing to it (contract page 85)."""

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim.store.database.connecting.engine import (
    DatabaseSettings,
    make_read_only_engine,
)
from treeclaim.store.takeover import (
    load_check,
    row_check,
    schema_check,
    server_settings,
)
from treeclaim.store.takeover.findings import Finding, failed, passed


def check(settings: DatabaseSettings) -> list[Finding]:
    """Check a database and its server, without writing.

    Args:
        settings: How to connect.

    Returns:
        The findings, in order; checks that an error makes impossible are left out.
    """
    try:
        engine = make_read_only_engine(settings)
    except (SQLAlchemyError, ImportError) as error:
        return [_unreachable(error)]
    try:
        with engine.connect() as connection:
            return list(_findings(connection, settings))
    except DBAPIError as error:
        return [_unreachable(error.orig or error)]
    finally:
        engine.dispose()


def _unreachable(error: BaseException) -> Finding:
    return failed(
        "connection",
        f"the database does not answer: {str(error).strip()}",
        "Look at [placement_database]/connection: address, port, name, user and password; a file "
        "of SQLite must exist, or be made by 'treeclaim db sync'.",
    )


def _findings(connection: Connection, settings: DatabaseSettings) -> Iterator[Finding]:
    version = ".".join(map(str, connection.dialect.server_version_info or ()))
    yield passed("connection", f"{connection.dialect.name} {version} answers")
    yield from server_settings.findings(connection, settings)
    inspector = sa.inspect(connection)
    present = {
        table: {column["name"] for column in inspector.get_columns(table)}
        for table in inspector.get_table_names()
    }
    yield from schema_check.findings(connection, present)
    yield from row_check.findings(connection, present)
    yield from load_check.findings(connection, present)
