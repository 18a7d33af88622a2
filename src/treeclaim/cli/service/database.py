# SPDX-License-Identifier: Apache-2.0
"""`treeclaim db …`: the schema and its upkeep (contract page 05, section 4).

Deployment tools read the exit codes and lines of `online_data_migrations` (section 4.1), which are Placement's.
"""

import argparse
import logging
from collections import Counter
from datetime import timedelta

import sqlalchemy as sa
from prettytable import PrettyTable

from treeclaim.cli.arguments import CONFIG_OPTIONS, DeclaredCommand
from treeclaim.cli.output import FAILED, CommandError, print_lines
from treeclaim.cli.service.stores import configuration_of, opened_store
from treeclaim.config import Configuration
from treeclaim.model.errors import TreeclaimError
from treeclaim.store import Store
from treeclaim.store.database.engine import await_database
from treeclaim.store.database.requirements import require_usable_server
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema.tables import PLACEMENT_REVISION, alembic_version, placement
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.data_migrations import MIGRATIONS, Owner
from treeclaim.store.takeover.findings import Level

_KEEP_HOURS = 25
"""Default of the service. With less, cursors of clients expire before a day is over."""

_VERDICTS = {
    Level.OK: "The database can be used.",
    Level.WARNING: "The database can be used; look at the warnings.",
    Level.ERROR: "The database cannot be used as it is.",
}

_LOG = logging.getLogger(__name__)

_BATCH = 50

_MORE_TO_DO = 1

_WRONG_COUNT = 127


class _StoreCommand(DeclaredCommand):
    """A command on the database of a configuration."""

    arguments = CONFIG_OPTIONS

    def execute(self, options: argparse.Namespace) -> int | None:
        configuration = configuration_of(options)
        with opened_store(configuration) as store:
            return self.use(store, configuration, options)

    def use(
        self, store: Store, configuration: Configuration, options: argparse.Namespace
    ) -> int | None:
        raise NotImplementedError


class SyncDatabase(_StoreCommand):
    """Upgrade the schema to the newest revision."""

    def use(self, store: Store, configuration: Configuration, options: argparse.Namespace) -> None:
        del options
        database = configuration.options.placement_database
        await_database(store.engine, attempts=database.max_retries, pause=database.retry_interval)
        require_usable_server(store.engine, configuration.database)
        before = set(sa.inspect(store.engine).get_table_names())
        schema.sync(store.engine)
        store.write(standard_names.sync_standard_names)
        made = set(sa.inspect(store.engine).get_table_names()) - before
        print_lines(
            f"Made {len(made)} tables." if made else "The tables are there already; none was made."
        )


class ShowVersion(_StoreCommand):
    """Print the revision of the Placement schema."""

    def use(self, store: Store, configuration: Configuration, options: argparse.Namespace) -> None:
        del configuration, options
        with store.engine.connect() as connection:
            print_lines(str(schema.version(connection)))


class StampDatabase(_StoreCommand):
    """Record a revision without migrating the schema."""

    example = PLACEMENT_REVISION

    arguments = f"""
        VERSION  the revision
        {CONFIG_OPTIONS}
    """

    def use(self, store: Store, configuration: Configuration, options: argparse.Namespace) -> None:
        del configuration
        if options.version != PLACEMENT_REVISION:
            raise CommandError(
                f"{options.version!r} is not a revision that this program knows; it knows "
                f"{PLACEMENT_REVISION}, and could not use a database at another one. Nothing was "
                "changed."
            )
        missing = placement.tables.keys() - set(sa.inspect(store.engine).get_table_names())
        if missing - {alembic_version.name}:
            raise CommandError(
                "the database does not have the tables of this revision "
                f"({', '.join(sorted(missing)[:3])} …); 'treeclaim db sync' makes them. Nothing "
                "was changed."
            )
        schema.stamp(store.engine, options.version)


class PruneDatabase(_StoreCommand):
    """Delete rows that the change feed no longer needs."""

    example = "--keep-hours 48"

    arguments = f"""
        --keep-hours HOURS = {_KEEP_HOURS}  how much of the feed to keep
        {CONFIG_OPTIONS}
    """

    def use(self, store: Store, configuration: Configuration, options: argparse.Namespace) -> None:
        require_usable_server(store.engine, configuration.database)
        schema.require_ready(store.engine)
        deleted = store.housekeeper.prune(timedelta(hours=options.keep_hours))
        print_lines(f"{deleted} rows of the change feed deleted")


class CheckDatabase(DeclaredCommand):
    """Check whether the database can be taken over. Nothing is changed.

    Exit status: 0 if it can, 1 for warnings, 2 for errors.
    """

    example = "--config-file /etc/placement/placement.conf"

    arguments = CONFIG_OPTIONS

    def execute(self, options: argparse.Namespace) -> int:
        findings = check(configuration_of(options).database)
        for finding in findings:
            print_lines(f"{finding.level.name.lower():7} {finding.subject}: {finding.text}")
            if finding.remedy:
                print_lines(f"        → {finding.remedy}")
        worst = max(finding.level for finding in findings)
        print_lines(_VERDICTS[worst])
        return int(worst)


class MigrateOnline(_StoreCommand):
    """Fill in the columns that older rows lack."""

    example = "--max-count 1000"

    arguments = f"""
        --max-count COUNT  migrate at most this many records, then stop (default: all)
        {CONFIG_OPTIONS}
    """

    def use(self, store: Store, configuration: Configuration, options: argparse.Namespace) -> int:
        limit = _limit(options.max_count)
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
        migrated, has_failed = _migrate_batch(store, owner, limit or _BATCH, totals)
        while migrated and limit is None:
            migrated, has_failed = _migrate_batch(store, owner, _BATCH, totals)
        table = PrettyTable(["Migration", "Total Found", "Completed"])
        for name, total in totals.items():
            table.add_row([name, total["found"], total["done"]])
        print_lines(*str(table).splitlines())
        if has_failed and not migrated:
            return FAILED
        return _MORE_TO_DO if migrated else 0


def _migrate_batch(
    store: Store, owner: Owner, most: int, totals: dict[str, Counter[str]]
) -> tuple[int, bool]:
    """Migrate a bounded number of records; return how many, and whether a migration failed."""
    migrated, has_failed = 0, False
    for migration in MIGRATIONS:
        if migrated >= most:
            break
        name = migration.__name__
        try:
            found, done = store.write(migration, most - migrated, owner)
        except TreeclaimError as error:
            _LOG.exception("The migration %s failed", name)
            print_lines(f"Error attempting to run {name}: {error}")
            has_failed = True
            found, done = 0, 0
        if found:
            print_lines(f"{found} rows matched query {name}, {done} migrated")
        totals.setdefault(name, Counter()).update(found=found, done=done)
        migrated += done
    return migrated, has_failed


def _limit(text: str | None) -> int | None:
    """Read the count; what is not a number is as wrong as zero."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return 0
