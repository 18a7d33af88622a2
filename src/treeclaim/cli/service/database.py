# SPDX-License-Identifier: Apache-2.0
"""`treeclaim db …`: the schema and its upkeep (contract page 05, section 4).

Deployment tools look at the exit codes and lines of `online_data_migrations` (section 4.1), which are Placement's.
"""

import argparse
import logging
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from prettytable import PrettyTable

from treeclaim.cli.output import FAILED, CommandError, add_config_options, printer, say
from treeclaim.cli.printing import line
from treeclaim.cli.service.stores import configuration_of, opened_store
from treeclaim.config import Configuration
from treeclaim.model.errors import TreeclaimError
from treeclaim.store import Store
from treeclaim.store.database.connecting.engine import await_database
from treeclaim.store.database.connecting.pooling import require_own_sessions
from treeclaim.store.database.connecting.requirements import require_supported_server
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema.tables import PLACEMENT_REVISION, alembic_version, placement
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.data_migrations import MIGRATIONS, Migrated, Migration, Owner
from treeclaim.store.takeover.findings import Level

_KEEP_HOURS = 25
"""As the service itself keeps: less, and cursors of clients expire before their day is over."""

_MOST_HOURS = 24 * 36_500
"""Hours of a hundred years: more than any feed holds, and less than a date can bear."""

_MARKS = {
    Level.OK: ("ok     ", "green"),
    Level.WARNING: ("warning", "yellow"),
    Level.ERROR: ("error  ", "bold red"),
}

_VERDICTS = {
    Level.OK: "The database can be used.",
    Level.WARNING: "The database can be used; look at the warnings.",
    Level.ERROR: "The database cannot be used as it is.",
}

_LOG = logging.getLogger(__name__)

_BATCH = 50

_MORE_TO_DO = 1

_WRONG_COUNT = 127


def add_to(commands: Any) -> None:
    """Add the command and its parts."""
    command = commands.add_parser("db")
    parts = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    sync = parts.add_parser("sync", help="upgrade the schema to the newest revision")
    _finish(sync, _sync)
    version = parts.add_parser("version", help="print the revision of the Placement schema")
    _finish(version, _version)
    stamp = parts.add_parser("stamp", help="record a revision without migrating the schema")
    stamp.add_argument("version", help="the revision")
    _finish(stamp, _stamp)
    migrations = parts.add_parser("online_data_migrations", help="fill in what older rows lack")
    migrations.add_argument(
        "--max-count", metavar="N", help="migrate at most N records, then stop"
    )
    _finish(migrations, migrate_online)
    prune = parts.add_parser("prune", help="delete what the change feed no longer needs")
    prune.add_argument(
        "--keep-hours",
        type=_hours,
        default=_KEEP_HOURS,
        metavar="HOURS",
        help=f"how much of the feed to keep ({_KEEP_HOURS})",
    )
    _finish(prune, _prune)
    look = parts.add_parser(
        "check",
        help="say whether the database can be taken over; nothing is changed; exit code 1 for "
        "warnings, 2 for errors",
    )
    add_config_options(look)
    look.set_defaults(run=_check)


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1
    if not 0 <= hours <= _MOST_HOURS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours")
    return hours


def _finish(
    command: argparse.ArgumentParser,
    run: Callable[[Store, Configuration, argparse.Namespace], int | None],
) -> None:
    add_config_options(command)

    def with_store(options: argparse.Namespace) -> int:
        configuration = configuration_of(options)
        with opened_store(configuration) as store:
            return run(store, configuration, options) or 0

    command.set_defaults(run=with_store)


def _sync(store: Store, configuration: Configuration, _options: argparse.Namespace) -> None:
    database = configuration.options.placement_database
    await_database(store.engine, attempts=database.max_retries, pause=database.retry_interval)
    require_supported_server(store.engine)
    require_own_sessions(configuration.database)
    later = schema.sync(store.engine)
    if later is not None:
        say(
            f"A later release of Treeclaim made its tables in this database (revision {later}), and "
            "says that this one can use them. Nothing was changed."
        )
        return
    store.write(standard_names.sync_standard_names)


def _version(store: Store, _configuration: Configuration, _options: argparse.Namespace) -> None:
    with store.engine.connect() as connection:
        say(str(schema.version(connection)))


def _stamp(store: Store, _configuration: Configuration, options: argparse.Namespace) -> None:
    """Record a revision, if it is known and its tables exist."""
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
            f"({', '.join(sorted(missing)[:3])} …); 'treeclaim db sync' makes them. Nothing was "
            "changed."
        )
    schema.stamp(store.engine, options.version)


def _prune(store: Store, configuration: Configuration, options: argparse.Namespace) -> None:
    require_own_sessions(configuration.database)
    schema.require_ready(store.engine)
    deleted = store.prune(timedelta(hours=options.keep_hours))
    say(f"{deleted} rows of the change feed deleted")


def _check(options: argparse.Namespace) -> int:
    """Print the findings and a verdict; change nothing."""
    findings = check(configuration_of(options).database)
    console = printer()
    for finding in findings:
        mark, style = _MARKS[finding.level]
        console.print(line((mark, style), f" {finding.subject}: {finding.text}"))
        if finding.remedy:
            console.print(f"        → {finding.remedy}")
    worst = max(finding.level for finding in findings)
    console.print(_VERDICTS[worst])
    return int(worst)


class _Run:
    """One run of the command over all migrations, with its sums."""

    def __init__(self, store: Store, owner: Owner) -> None:
        self._store = store
        self._owner = owner
        self.found: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.failed = False

    def batch(self, most: int) -> int:
        """Migrate a bounded number of records; return how many were migrated."""
        migrated = 0
        self.failed = False
        for migration in MIGRATIONS:
            if migrated >= most:
                break
            migrated += self._one(migration, most - migrated).done
        return migrated

    def _one(self, migration: Migration, most: int) -> Migrated:
        name = migration.__name__
        try:
            result = self._store.write(migration, most, self._owner)
        except TreeclaimError as error:
            _LOG.exception("The migration %s failed", name)
            say(f"Error attempting to run {name}: {error}")
            self.failed = True
            result = Migrated(0, 0)
        if result.found:
            say(f"{result.found} rows matched query {name}, {result.done} migrated")
        self.found[name] += result.found
        self.done[name] += result.done
        return result

    def show(self) -> None:
        """Print the sums."""
        table = PrettyTable(["Migration", "Total Found", "Completed"])
        table.add_rows([[name, self.found[name], self.done[name]] for name in self.found])
        say(*str(table).splitlines())


def migrate_online(store: Store, configuration: Configuration, options: argparse.Namespace) -> int:
    """Run the migrations; return the exit code."""
    limit = _limit(options.max_count)
    if limit is not None and limit < 1:
        say("Must supply a positive value for max_count")
        return _WRONG_COUNT
    require_own_sessions(configuration.database)
    schema.require_ready(store.engine)
    placement = configuration.options.placement
    owner = Owner(placement.incomplete_consumer_project_id, placement.incomplete_consumer_user_id)
    running = _Run(store, owner)
    if limit is None:
        say(f"Running batches of {_BATCH} until complete")
        migrated = running.batch(_BATCH)
        while migrated:
            migrated = running.batch(_BATCH)
    else:
        migrated = running.batch(limit)
    running.show()
    if running.failed and not migrated:
        return FAILED
    return _MORE_TO_DO if migrated else 0


def _limit(text: str | None) -> int | None:
    """Read the count; what is not a number is as wrong as zero."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return 0
