# SPDX-License-Identifier: Apache-2.0
"""`treeclaim db …` and `treeclaim upgrade check` (contract page 05, section 4).

The exit codes and lines of `online_data_migrations` and of the checks are Placement's, as deployment tools read
them (sections 4.1 and 4.2).
"""

import argparse
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import sqlalchemy as sa
from oslo_config import cfg
from oslo_upgradecheck import common_checks
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands
from prettytable import PrettyTable
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim import config
from treeclaim.cli.output import FAILED, CommandError, print_lines
from treeclaim.model.errors import SchemaRevisionError, StoreUnavailableError, TreeclaimError
from treeclaim.store import Store
from treeclaim.store.database.engine import await_database, describe_engine_error, lend_connection
from treeclaim.store.database.requirements import require_usable_server
from treeclaim.store.database.systems import get_system
from treeclaim.store.feed.shards import reset
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.reading.holders import CONSUMERS_WITHOUT_RECORD
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema.tables import PLACEMENT_REVISION, alembic_version, placement
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.data_migrations import (
    MIGRATIONS,
    PROVIDERS_WITHOUT_ROOT,
    Owner,
    count_rows,
)
from treeclaim.store.takeover.findings import Level

_VERDICTS = {
    Level.OK: "The database can be used.",
    Level.WARNING: "The database can be used; look at the warnings.",
    Level.ERROR: "The database cannot be used as it is.",
}

_CONNECTION = "[placement_database]/connection"

_LOG = logging.getLogger(__name__)

_BATCH = 50

_MORE_TO_DO = 1

_WRONG_COUNT = 127

_REMEDY = 'Run the "placement-manage db online_data_migrations" command.'


@contextmanager
def open_store(options: argparse.Namespace) -> Iterator[tuple[Store, config.Configuration]]:
    """Load the configuration and open its store; yield both."""
    configuration = load_configuration(options)
    try:
        store = Store(configuration.database)
    except (SQLAlchemyError, ImportError, ValueError) as error:
        raise CommandError(f"{_CONNECTION}: {describe_engine_error(error)}") from error
    try:
        yield store, configuration
    except SchemaRevisionError as error:
        raise CommandError(str(error)) from error
    except StoreUnavailableError as error:
        raise CommandError(error.for_operators) from error
    except DBAPIError as error:
        raise CommandError(f"the database: {' '.join(str(error.orig).split())}") from error
    except (SQLAlchemyError, ImportError) as error:
        raise CommandError(f"{_CONNECTION}: {describe_engine_error(error)}") from error
    finally:
        store.close()


@contextmanager
def _open_ready_store(options: argparse.Namespace) -> Iterator[tuple[Store, config.Configuration]]:
    """Open a store whose server and schema the service can use."""
    with open_store(options) as (store, configuration):
        require_usable_server(store.engine, configuration.database)
        schema.require_ready(store.engine)
        yield store, configuration


def load_configuration(options: argparse.Namespace) -> config.Configuration:
    """Load the configuration files of a command's options."""
    try:
        return config.load(config_files=options.config_files, config_dirs=options.config_dirs)
    except config.ConfigurationError as error:
        raise CommandError(*error.lines) from error


def sync(options: argparse.Namespace) -> None:
    """Upgrade the schema to the newest revision."""
    with open_store(options) as (store, configuration):
        database = configuration.options.placement_database
        await_database(store.engine, attempts=database.max_retries, pause=database.retry_interval)
        require_usable_server(store.engine, configuration.database)
        old_tables = set(sa.inspect(store.engine).get_table_names())
        schema.sync(store.engine)
        store.write(standard_names.sync_standard_names)
        new_tables = set(sa.inspect(store.engine).get_table_names()) - old_tables
    print_lines(
        f"Made {len(new_tables)} tables."
        if new_tables
        else "The tables are there already; none was made."
    )


def show_version(options: argparse.Namespace) -> None:
    """Print the revision of the Placement schema."""
    with open_store(options) as (store, _), store.engine.connect() as connection:
        print_lines(str(schema.read_placement_revision(connection)))


def stamp(options: argparse.Namespace) -> None:
    """Record a revision without migrating the schema."""
    with open_store(options) as (store, _):
        if options.version != PLACEMENT_REVISION:
            raise CommandError(
                f"{options.version!r} is not a revision that this program can use; it can only use "
                f"{PLACEMENT_REVISION}. Nothing was changed."
            )
        missing_tables = placement.tables.keys() - set(sa.inspect(store.engine).get_table_names())
        if missing_tables - {alembic_version.name}:
            raise CommandError(
                "the database does not have the tables of this revision "
                f"({', '.join(sorted(missing_tables)[:3])} …); 'treeclaim db sync' makes them. Nothing "
                "was changed."
            )
        schema.stamp(store.engine, options.version)


def prune(options: argparse.Namespace) -> None:
    """Delete rows that the change feed no longer needs."""
    with _open_ready_store(options) as (store, _):
        deleted_count = store.housekeeper.prune(timedelta(hours=options.keep_hours))
        print_lines(f"{deleted_count} rows of the change feed deleted")


def reset_feed(options: argparse.Namespace) -> None:
    """Make every worker and every watcher load everything again."""
    with _open_ready_store(options) as (store, _):
        engine = get_system(store.engine).for_writing(store.engine)
        with lend_connection(engine) as connection, connection.begin():
            reset(connection)
        print_lines("The change feed begins anew; every worker loads everything at its next read.")


def check_takeover(options: argparse.Namespace) -> int:
    """Print the obstacles to a takeover; return the level of the worst finding."""
    findings = check(load_configuration(options).database)
    for finding in findings:
        print_lines(f"{finding.level.name.lower():7} {finding.subject}: {finding.text}")
        if finding.remedy:
            print_lines(f"        → {finding.remedy}")
    worst_level = max(finding.level for finding in findings)
    print_lines(_VERDICTS[worst_level])
    return int(worst_level)


def migrate_online(options: argparse.Namespace) -> int:
    """Fill in the columns that older rows lack; return the exit status."""
    with open_store(options) as (store, configuration):
        limit = _parse_limit(options.max_count)
        if limit is not None and limit < 1:
            print_lines("Must supply a positive value for max_count")
            return _WRONG_COUNT
        require_usable_server(store.engine, configuration.database)
        schema.require_ready(store.engine)
        names = configuration.options.placement
        owner = (names.incomplete_consumer_project_id, names.incomplete_consumer_user_id)
        totals: dict[str, Counter[str]] = {}
        if limit is None:
            print_lines(f"Running batches of {_BATCH} until complete")
        migrated_count, has_failed = _migrate_batch(store, owner, limit or _BATCH, totals)
        while migrated_count and limit is None:
            migrated_count, has_failed = _migrate_batch(store, owner, _BATCH, totals)
    table = PrettyTable(["Migration", "Total Found", "Completed"])
    for name, total in totals.items():
        table.add_row([name, total["found"], total["done"]])
    print_lines(*str(table).splitlines())
    if has_failed and not migrated_count:
        return FAILED
    return _MORE_TO_DO if migrated_count else 0


def _migrate_batch(
    store: Store, owner: Owner, limit: int, totals: dict[str, Counter[str]]
) -> tuple[int, bool]:
    """Migrate a bounded number of records; return their number, and whether a migration failed."""
    migrated_count, has_failed = 0, False
    for migration in MIGRATIONS:
        if migrated_count >= limit:
            break
        name = migration.__name__
        try:
            match_count, done_count = store.write(migration, limit - migrated_count, owner)
        except TreeclaimError as error:
            _LOG.exception("The migration %s failed", name)
            print_lines(f"Error attempting to run {name}: {error}")
            has_failed = True
            match_count, done_count = 0, 0
        if match_count:
            print_lines(f"{match_count} rows matched query {name}, {done_count} migrated")
        totals.setdefault(name, Counter()).update(found=match_count, done=done_count)
        migrated_count += done_count
    return migrated_count, has_failed


def _parse_limit(text: str | None) -> int | None:
    # An invalid number is treated like zero.
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return 0


def check_upgrade(options: argparse.Namespace) -> int:
    """Run the checks before an upgrade; return the worst of their codes."""
    with open_store(options) as (store, configuration):
        with store.engine.connect() as connection:
            if schema.read_placement_revision(connection) is None:
                raise CommandError("the database is empty; 'treeclaim db sync' makes its tables")
        return int(_Checks(store, configuration.options).check())


class _Checks(UpgradeCommands):
    def __init__(self, store: Store, options: cfg.ConfigOpts) -> None:
        self._store = store
        self._upgrade_checks = (
            ("Missing Root Provider IDs", _Checks._check_roots),
            ("Incomplete Consumers", _Checks._check_consumers),
            (
                "Policy File JSON to YAML Migration",
                (common_checks.check_policy_json, {"conf": options}),
            ),
        )

    def _check_roots(self) -> Result:
        if not self._store.read(count_rows, PROVIDERS_WITHOUT_ROOT):
            return Result(Code.SUCCESS)
        return Result(
            Code.FAILURE,
            "There is at least one resource provider table record which misses its root "
            f"provider id. {_REMEDY}",
        )

    def _check_consumers(self) -> Result:
        record_count = self._store.read(count_rows, CONSUMERS_WITHOUT_RECORD)
        if not record_count:
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            f"There are {record_count} incomplete consumers table records for existing allocations. "
            f"{_REMEDY}",
        )
