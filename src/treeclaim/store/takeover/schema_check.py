# SPDX-License-Identifier: Apache-2.0
"""Checks the tables of a database to be taken over."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

import sqlalchemy as sa
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from treeclaim.store.schema.revisions import OWN_VERSION_TABLE, own_migrations
from treeclaim.store.schema.tables import PLACEMENT_REVISION, alembic_version, own, placement
from treeclaim.store.takeover.findings import Finding, failed, passed, warned

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
        "Run 'placement-manage db sync' of the Placement release that has that revision.",
    )


def _own_tables(connection: Connection, present: AbstractSet[str]) -> Finding:
    if OWN_VERSION_TABLE not in present:
        return passed("own tables", "not there yet; 'treeclaim db sync' makes them")
    found = connection.execute(
        sa.select(sa.column("version_num")).select_from(sa.table(OWN_VERSION_TABLE))
    ).scalar()
    scripts = ScriptDirectory.from_config(own_migrations())
    known = {script.revision for script in scripts.walk_revisions()}
    missing = [name for name in own.tables if name not in present]
    if found not in known:
        return failed(
            "own tables",
            f"at revision {found}, which this program does not know",
            "Use the release of Treeclaim that made them, or a newer one.",
        )
    if missing or found != scripts.get_current_head():
        return warned("own tables", "not of the newest revision", _SYNC)
    return passed("own tables", f"at the newest revision, {found}")
