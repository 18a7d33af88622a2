# SPDX-License-Identifier: Apache-2.0
"""`treeclaim db online_data_migrations` (contract page 05, section 4.1).

Deployment tools look at the exit codes and lines, which are Placement's.
"""

import argparse
import logging
from collections import Counter

from prettytable import PrettyTable

from treeclaim.cli.output import say
from treeclaim.config import Configuration
from treeclaim.model.errors import TreeclaimError
from treeclaim.store import Store
from treeclaim.store.database.connecting.pooling import require_own_sessions
from treeclaim.store.schema import revisions as schema
from treeclaim.store.takeover.data_migrations import MIGRATIONS, Migrated, Migration, Owner

_LOG = logging.getLogger(__name__)

_BATCH = 50
_MORE_TO_DO = 1
_FAILED = 2
_WRONG_COUNT = 127


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


def run(store: Store, configuration: Configuration, options: argparse.Namespace) -> int:
    """Run the migrations; return the exit code."""
    limit = _limit(options.max_count)
    if limit is not None and limit < 1:
        say("Must supply a positive value for max_count")
        return _WRONG_COUNT
    require_own_sessions(configuration.database)
    schema.require_ready(store.engine)
    owner = Owner(configuration.incomplete_project_id, configuration.incomplete_user_id)
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
        return _FAILED
    return _MORE_TO_DO if migrated else 0


def _limit(text: str | None) -> int | None:
    """Read the count; what is no number is as wrong as zero."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return 0
