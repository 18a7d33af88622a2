# SPDX-License-Identifier: Apache-2.0
"""Whether a database can be taken over, found out without changing it (contract page 85)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim.store import server_settings
from treeclaim.store.engine import DatabaseSettings, make_engine_that_only_reads
from treeclaim.store.findings import Finding, Level, failed, passed, warned
from treeclaim.store.schema import OWN_VERSION_TABLE, own_migrations
from treeclaim.store.tables import (
    PLACEMENT_REVISION,
    alembic_version,
    allocations,
    consumers,
    inventories,
    own,
    placement,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
)

_BACK_UP = "Make a backup first."
_MIGRATE = "Run 'treeclaim db online_data_migrations'."
_SYNC = "Run 'treeclaim db sync'."


def check(settings: DatabaseSettings) -> list[Finding]:
    """Look at a database and its server; nothing is changed, nor created.

    Args:
        settings: How to reach it.

    Returns:
        What was found, in the order of looking; what cannot be looked at after an error is left
        out.
    """
    try:
        engine = make_engine_that_only_reads(settings)
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
    yield from _schema(connection, present)
    yield _own_tables(connection, set(present))
    for rule in _RULES:
        if all(
            set(table.columns.keys()) <= present.get(table.name, set()) for table in rule.tables
        ):
            yield rule.finding(connection)


def _schema(connection: Connection, present: dict[str, set[str]]) -> Iterator[Finding]:
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


def _own_tables(connection: Connection, present: set[str]) -> Finding:
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


@dataclass(frozen=True, slots=True)
class _Rule:
    """Rows that should not be.

    Attributes:
        subject: What is looked at.
        level: How bad such rows are.
        text: What is wrong with them, after their number.
        remedy: What to do.
        tables: Which must be there, for the rule to be asked.
        count: The number of such rows.
    """

    subject: str
    level: Level
    text: str
    remedy: str
    tables: tuple[sa.Table, ...]
    count: Callable[[], sa.Select[Any]]

    def finding(self, connection: Connection) -> Finding:
        number = connection.execute(self.count()).scalar_one()
        if not number:
            return passed(self.subject, f"none {self.text}")
        return Finding(self.level, self.subject, f"{number} {self.text}", self.remedy)


def _without(column: sa.Column[int], target: sa.Column[int]) -> sa.Select[Any]:
    """Return how many rows refer to a row that is not there."""
    other = target.table.alias("referred")
    return (
        sa.select(sa.func.count())
        .select_from(column.table.outerjoin(other, other.c[target.name] == column))
        .where(column.is_not(None), other.c[target.name].is_(None))
    )


def _dangling(
    table: sa.Table, name: str, target: sa.Table, *, level: Level, wrong: str, advice: str = ""
) -> _Rule:
    """Return the rule that a column refers to nothing that is not there."""
    column = table.c[name]
    delete = sa.delete(table).where(column.not_in(sa.select(target.c.id)))
    return _Rule(
        subject=table.name,
        level=level,
        text=wrong,
        remedy=advice or f"{_BACK_UP} Then: {' '.join(str(delete).split())};",
        tables=(table, target),
        count=lambda: _without(column, target.c.id),
    )


def _rootless() -> sa.Select[Any]:
    column = resource_providers.c.root_provider_id
    return sa.select(sa.func.count()).select_from(resource_providers).where(column.is_(None))


def _unrecorded_consumers() -> sa.Select[Any]:
    joined = allocations.outerjoin(consumers, consumers.c.uuid == allocations.c.consumer_id)
    return (
        sa.select(sa.func.count(allocations.c.consumer_id.distinct()))
        .select_from(joined)
        .where(consumers.c.id.is_(None))
    )


_OF_NO_PROVIDER = "of a provider that does not exist"
_BY_HAND = f"{_BACK_UP} Then correct these rows by hand."

_RULES = (
    _Rule(
        "resource_providers",
        Level.ERROR,
        "without a root provider",
        _MIGRATE,
        (resource_providers,),
        _rootless,
    ),
    _Rule(
        "consumers",
        Level.WARNING,
        "that hold allocations but have no record",
        _MIGRATE,
        (allocations, consumers),
        _unrecorded_consumers,
    ),
    *(
        _dangling(
            resource_providers,
            f"{word}_provider_id",
            resource_providers,
            level=Level.ERROR,
            wrong=f"whose {word} does not exist",
            advice=_BY_HAND,
        )
        for word in ("parent", "root")
    ),
    *(
        _dangling(
            table,
            "resource_provider_id",
            resource_providers,
            level=Level.WARNING,
            wrong=_OF_NO_PROVIDER,
        )
        for table in (
            inventories,
            allocations,
            resource_provider_traits,
            resource_provider_aggregates,
        )
    ),
    *(
        _dangling(
            table,
            "resource_class_id",
            resource_classes,
            level=Level.ERROR,
            wrong="of a resource class that does not exist",
        )
        for table in (inventories, allocations)
    ),
    _dangling(
        resource_provider_traits,
        "trait_id",
        traits,
        level=Level.ERROR,
        wrong="of a trait that does not exist",
    ),
    _dangling(
        resource_provider_aggregates,
        "aggregate_id",
        placement_aggregates,
        level=Level.WARNING,
        wrong="of an aggregate that does not exist",
    ),
    *(
        _dangling(
            consumers,
            f"{word}_id",
            target,
            level=Level.ERROR,
            wrong=f"of a {word} that does not exist",
            advice=_BY_HAND,
        )
        for word, target in (("project", projects), ("user", users))
    ),
)
