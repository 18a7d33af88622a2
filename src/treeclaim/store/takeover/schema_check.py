# SPDX-License-Identifier: Apache-2.0
"""Checks the tables of a database to be taken over."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from treeclaim.model.errors import SchemaRevisionError
from treeclaim.store.schema.later_releases import (
    OWN_VERSION_TABLE,
    later_revision,
    own_revision,
)
from treeclaim.store.schema.tables import (
    OWN_REVISIONS,
    PLACEMENT_REVISION,
    alembic_version,
    own_tables,
    placement,
)
from treeclaim.store.takeover.findings import Finding, failed, passed, warned

_OWN = "own tables"
_SYNC = "Run 'treeclaim db sync'."


def findings(connection: Connection, present: Mapping[str, AbstractSet[str]]) -> Iterator[Finding]:
    """Compare the present tables with those that this program supports.

    Args:
        connection: To the database.
        present: Names of the present columns by table.
    """
    yield from _tables_of_placement(connection, present)
    yield _own_tables(connection, present.keys())


def _tables_of_placement(
    connection: Connection, present: Mapping[str, AbstractSet[str]]
) -> Iterator[Finding]:
    tables = [table for table in placement.sorted_tables if table is not alembic_version]
    if alembic_version.name not in present:
        if not any(table.name in present for table in tables):
            yield warned("schema", "the database is empty: there is nothing to take over", _SYNC)
            return
        yield failed(
            "schema",
            "there are tables of Placement, but no table alembic_version with their revision",
            "If they are known to be those of revision "
            f"{PLACEMENT_REVISION}, run 'treeclaim db stamp {PLACEMENT_REVISION}'.",
        )
    else:
        yield _revision(connection)
    missing = [table.name for table in tables if table.name not in present]
    missing += [
        f"{table.name}.{name}"
        for table in tables
        if table.name in present
        for name in sorted(set(table.columns.keys()) - present[table.name])
    ]
    if missing:
        yield failed(
            "tables",
            f"missing: {', '.join(missing)}",
            "Restore them from a backup, or run 'placement-manage db sync'.",
        )
    else:
        yield passed("tables", f"all {len(tables)} tables of Placement are there")


def _revision(connection: Connection) -> Finding:
    found = [str(row[0]) for row in connection.execute(sa.select(alembic_version.c.version_num))]
    if found == [PLACEMENT_REVISION]:
        return passed("schema", f"revision {PLACEMENT_REVISION}, which this program understands")
    return failed(
        "schema",
        f"revision {', '.join(found) or 'unknown (no row)'}; this program understands "
        f"{PLACEMENT_REVISION} only",
        "Run 'placement-manage db sync' of the Placement release that has revision "
        f"{PLACEMENT_REVISION}.",
    )


def _own_tables(connection: Connection, present: AbstractSet[str]) -> Finding:
    if OWN_VERSION_TABLE not in present:
        return passed(_OWN, "not there yet; 'treeclaim db sync' makes them")
    try:
        later = later_revision(connection)
    except SchemaRevisionError as error:
        return failed(_OWN, str(error), "")
    if later is not None:
        return passed(
            _OWN, f"at revision {later} of a later release, which says that this one can use them"
        )
    missing = [name for name in own_tables.tables if name not in present]
    found = own_revision(connection)
    if missing or found != OWN_REVISIONS[-1]:
        return warned(_OWN, "not of the newest revision", _SYNC)
    return passed(_OWN, f"at the newest revision, {found}")
