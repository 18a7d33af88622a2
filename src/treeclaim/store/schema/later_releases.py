# SPDX-License-Identifier: Apache-2.0
"""Checks whether this release can use own tables that a later one made.

Each release records with its tables the oldest revision whose programs can use them. A release that
finds an unknown revision checks whether it knows that one.
"""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from treeclaim.model.errors import SchemaRevisionError
from treeclaim.store.schema.tables import OWN_REVISIONS, USABLE_FROM

OWN_VERSION_TABLE = "treeclaim_alembic_version"
"""The table with the revision of Treeclaim's own tables, beside Placement's `alembic_version`."""

_versions = sa.Table(
    OWN_VERSION_TABLE,
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name=f"{OWN_VERSION_TABLE}_pkc"),
)

_compatibility = sa.Table(
    "treeclaim_compatibility",
    sa.MetaData(),
    sa.Column("usable_from", sa.String(32), primary_key=True),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb3",
)


def own_revision(connection: Connection) -> str | None:
    """Return the revision of the own tables, None if there is none."""
    return _first(connection, _versions)


def later_revision(connection: Connection) -> str | None:
    """Return the revision of the own tables if a later release made them, else None.

    Raises:
        SchemaRevisionError: if that release does not say that this one can use them.
    """
    revision = own_revision(connection)
    if revision is None or revision in OWN_REVISIONS:
        return None
    usable_from = _first(connection, _compatibility)
    if usable_from in OWN_REVISIONS:
        return revision
    needed = "" if usable_from is None else f", and can be used from revision {usable_from} on"
    raise SchemaRevisionError(
        f"Treeclaim's own tables were made by a later release: they are at revision {revision}"
        f"{needed}; this release knows {OWN_REVISIONS[-1]} at most. Nothing was changed. Use that "
        "release or a later one, or restore a backup from before it."
    )


def is_newest(connection: Connection) -> bool:
    """Return whether the own tables are as this release makes them, and which releases can use them."""
    is_made = own_revision(connection) == OWN_REVISIONS[-1]
    return is_made and _first(connection, _compatibility) is not None


def record_newest(connection: Connection) -> None:
    """Record the newest revision of the own tables, and which programs can use them."""
    for table, column, revision in (
        (_compatibility, "usable_from", USABLE_FROM),
        (_versions, "version_num", OWN_REVISIONS[-1]),
    ):
        table.create(connection, checkfirst=True)
        connection.execute(sa.delete(table))
        connection.execute(sa.insert(table), {column: revision})


def _first(connection: Connection, table: sa.Table) -> str | None:
    """Return the first value of a table, None if there is none, or no such table."""
    if not sa.inspect(connection).has_table(table.name):
        return None
    value = connection.execute(sa.select(table)).scalar()
    return None if value is None else str(value)
