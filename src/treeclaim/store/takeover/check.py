# SPDX-License-Identifier: Apache-2.0
"""Checks a database before a takeover, without writing to it (contract page 85)."""

from collections.abc import Iterator, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim.model.errors import SchemaRevisionError
from treeclaim.store.database.engine import make_read_only_engine
from treeclaim.store.database.failures import describe_cause
from treeclaim.store.database.systems import DatabaseSettings
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holders import CONSUMERS_WITHOUT_RECORD
from treeclaim.store.reading.providers.records import load_catalogue
from treeclaim.store.reading.providers.whole import load_whole_inventory
from treeclaim.store.schema.revisions import (
    Columns,
    find_missing_columns,
    load_columns,
    read_own_revision,
)
from treeclaim.store.schema.tables import (
    PLACEMENT_REVISION,
    ROWS_OF_PROVIDERS,
    alembic_version,
    own_tables,
    own_version,
    placement,
)
from treeclaim.store.takeover.data_migrations import PROVIDERS_WITHOUT_ROOT, count_rows
from treeclaim.store.takeover.findings import (
    Finding,
    Level,
    make_failure,
    make_success,
    make_warning,
)
from treeclaim.store.takeover.server_settings import check_server

_SYNC = "Run 'treeclaim db sync'."
_MIGRATE = "Run 'treeclaim db online_data_migrations'."
_BACK_UP = "Make a backup first. Then"
_BY_HAND = f"{_BACK_UP} correct these rows by hand."

_PARTS = [(table.name, "resource_provider_id") for table in ROWS_OF_PROVIDERS]
_REFERENCES: Mapping[tuple[str, Level, str], Sequence[tuple[str, str]]] = {
    ("resource_providers", Level.WARNING, "a provider"): _PARTS,
    ("resource_classes", Level.ERROR, "a resource class"): [
        ("inventories", "resource_class_id"),
        ("allocations", "resource_class_id"),
    ],
    ("traits", Level.ERROR, "a trait"): [("resource_provider_traits", "trait_id")],
    ("placement_aggregates", Level.WARNING, "an aggregate"): [
        ("resource_provider_aggregates", "aggregate_id")
    ],
    ("projects", Level.ERROR, "a project"): [("consumers", "project_id")],
    ("users", Level.ERROR, "a user"): [("consumers", "user_id")],
}
"""Columns that must refer to a row of a table, by that table, the level of a violation, and the noun for the row."""

_Rule = tuple[str, Sequence[str], Level, str, str]
"""Query for invalid rows, needed tables (the first has these rows), level, description and remedy."""

_UNICODE = {"utf8", "utf8mb3", "utf8mb4"}
_CHARACTER_SETS = """
SELECT table_name AS name, character_set_name AS charset FROM information_schema.columns
WHERE table_schema = DATABASE() AND character_set_name IS NOT NULL AND table_name IN :tables
"""


def check(settings: DatabaseSettings) -> list[Finding]:
    """Check a database and its server without writing; skip checks that an error prevents."""
    try:
        engine = make_read_only_engine(settings)
    except (SQLAlchemyError, ImportError) as error:
        return [_report_unreachable(error)]
    try:
        with engine.connect() as connection:
            return list(_run_checks(connection, settings))
    except DBAPIError as error:
        return [_report_unreachable(error.orig or error)]
    finally:
        engine.dispose()


def _report_unreachable(error: BaseException) -> Finding:
    return make_failure(
        "connection",
        f"the database does not answer: {str(error).strip()}",
        "Check [placement_database]/connection: address, port, name, user and password. For SQLite, the "
        "file must exist; 'treeclaim db sync' creates it.",
    )


def _run_checks(connection: Connection, settings: DatabaseSettings) -> Iterator[Finding]:
    version = ".".join(map(str, connection.dialect.server_version_info or ()))
    yield make_success("connection", f"{connection.dialect.name} {version} answers")
    yield from check_server(connection, settings)
    columns = load_columns(connection)
    yield from _check_placement_tables(connection, columns)
    yield _check_own_tables(connection, columns)
    yield from _check_rows(connection, columns)
    if connection.dialect.name == "mysql":
        yield from _check_character_sets(connection)
    if not find_missing_columns(placement, columns):
        has_own_tables = not find_missing_columns(own_tables, columns)
        yield _load_inventory(connection, has_own_tables=has_own_tables)


def _check_placement_tables(connection: Connection, columns: Columns) -> Iterator[Finding]:
    if alembic_version.name in columns:
        yield _check_revision(connection)
    elif columns.keys().isdisjoint(placement.tables):
        yield make_warning("schema", "the database is empty: there is nothing to take over", _SYNC)
        return
    else:
        yield make_failure(
            "schema",
            "there are tables of Placement, but no table alembic_version with their revision",
            "If they are known to be those of revision "
            f"{PLACEMENT_REVISION}, run 'treeclaim db stamp {PLACEMENT_REVISION}'.",
        )
    if missing_columns := find_missing_columns(placement, columns):
        yield make_failure(
            "tables",
            f"missing: {', '.join(missing_columns)}",
            "Restore them from a backup, or run 'placement-manage db sync'.",
        )
    else:
        yield make_success(
            "tables", f"all {len(placement.tables) - 1} tables of Placement are there"
        )


def _check_revision(connection: Connection) -> Finding:
    revisions = [
        str(row[0]) for row in connection.execute(sa.select(alembic_version.c.version_num))
    ]
    if revisions == [PLACEMENT_REVISION]:
        return make_success(
            "schema", f"revision {PLACEMENT_REVISION}, which this program understands"
        )
    return make_failure(
        "schema",
        f"revision {', '.join(revisions) or 'unknown (no row)'}; this program understands "
        f"{PLACEMENT_REVISION} only",
        "Run 'placement-manage db sync' of the Placement release that has revision "
        f"{PLACEMENT_REVISION}.",
    )


def _check_own_tables(connection: Connection, columns: Columns) -> Finding:
    subject = "own tables"
    if own_version.name not in columns:
        return make_success(subject, "not there yet; 'treeclaim db sync' creates them")
    try:
        revision = read_own_revision(connection)
    except SchemaRevisionError as error:
        return make_failure(subject, str(error), "")
    if revision is None:
        return make_warning(subject, "not complete", _SYNC)
    if missing_columns := find_missing_columns(own_tables, columns):
        return make_failure(
            subject, f"missing: {', '.join(missing_columns)}", "Restore them from a backup."
        )
    return make_success(subject, f"at revision {revision}")


def _check_character_sets(connection: Connection) -> Iterator[Finding]:
    tables: dict[str, set[str]] = {}
    rows = ReadTransaction(connection).rows(_CHARACTER_SETS, tables=sorted(placement.tables))
    for row in rows:
        tables.setdefault(str(row.charset), set()).add(str(row.name))
    non_unicode = sorted(tables.keys() - _UNICODE)
    if non_unicode:
        sets = (f"{charset} in {', '.join(sorted(tables[charset]))}" for charset in non_unicode)
        yield make_warning(
            "character set",
            f"{'; '.join(sets)}: a name with a character outside of it cannot be stored",
            "To store any name, run ALTER TABLE ... CONVERT TO CHARACTER SET utf8mb3 for each of "
            "them.",
        )
    elif tables:
        yield make_success(
            "character set", f"{', '.join(sorted(tables))} in all tables of Placement"
        )


def _check_rows(connection: Connection, columns: Columns) -> Iterator[Finding]:
    """Count invalid rows in tables that have all columns."""
    tables = placement.tables | own_tables.tables
    for sql, names, level, text, remedy in _list_rules():
        if any(not columns.get(name, set()) >= {*tables[name].columns.keys()} for name in names):
            continue
        if number := count_rows(ReadTransaction(connection), sql):
            yield Finding(level, names[0], f"{number} {text}", remedy)
        else:
            yield make_success(names[0], f"none {text}")


def _list_rules() -> Iterator[_Rule]:
    providers = "resource_providers"
    yield PROVIDERS_WITHOUT_ROOT, [providers], Level.ERROR, "without a root provider", _MIGRATE
    text = "that hold allocations but have no record"
    tables = ["consumers", "allocations"]
    yield CONSUMERS_WITHOUT_RECORD, tables, Level.WARNING, text, _MIGRATE
    for word in ("parent", "root"):
        dangling_references = _select_dangling(providers, f"{word}_provider_id", providers)
        yield (
            dangling_references,
            [providers],
            Level.ERROR,
            f"whose {word} does not exist",
            _BY_HAND,
        )
    for (target, level, noun), columns in _REFERENCES.items():
        for table, column in columns:
            delete = f"DELETE FROM {table} WHERE ({column} NOT IN (SELECT id FROM {target}))"
            remedy = _BY_HAND if table == "consumers" else f"{_BACK_UP}: {delete};"
            text = f"of {noun} that does not exist"
            yield _select_dangling(table, column, target), [table, target], level, text, remedy


def _select_dangling(table: str, column: str, target: str) -> str:
    """Return the query for references to missing rows of the target."""
    return (
        f"SELECT {column} FROM {table} referring WHERE {column} IS NOT NULL "
        f"AND NOT EXISTS (SELECT 1 FROM {target} referred WHERE referred.id = referring.{column})"
    )


def _load_inventory(connection: Connection, *, has_own_tables: bool) -> Finding:
    transaction = ReadTransaction(connection)
    try:
        load_catalogue(transaction)
        inventory = load_whole_inventory(transaction, has_own_tables=has_own_tables)
    except (SQLAlchemyError, ArithmeticError, TypeError, ValueError) as error:
        return make_failure(
            "inventory",
            f"it cannot be loaded: {describe_cause(error)}",
            "Correct the rows that the message names; without an inventory, every read fails.",
        )
    return make_success("inventory", f"{len(inventory.id)} providers were loaded")
