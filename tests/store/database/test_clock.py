# SPDX-License-Identifier: Apache-2.0
"""Ages follow the clock of the database, not that of a machine."""

import json
import subprocess
import sys
import uuid
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.databases import EACH_SERVER
from tests.store.hosts import create_host, make_claim, utc_now
from treeclaim.store.operations.providers import providers
from treeclaim.store.schema.tables import feed, resource_providers

MACHINE = """
import json, sys, uuid
from treeclaim.model.extension.audit import LivingConsumers
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.audit.findings import find_orphans
from treeclaim.store.operations.providers import providers
from treeclaim.store.housekeeping import FEED_RETENTION

store = Store(DatabaseSettings(sys.argv[1]))
name = str(uuid.uuid4())
store.write(providers.create, uuid=name, name=name, parent_uuid=None)
living = LivingConsumers({"INSTANCE": frozenset()}, older_than=3600)
found = store.read(find_orphans, 10, living)
print(json.dumps({"pruned": store.housekeeper.prune(FEED_RETENTION), "orphaned": found.count}))
store.close()
"""
"""Work as a worker does on a machine: write, look for orphans, and prune."""


@pytest.mark.slow
@pytest.mark.parametrize("database_kind", EACH_SERVER, indirect=True)
@pytest.mark.parametrize("shift", ["+30h", "-30h"])
def test_machine_with_wrong_clock_does_not_prune_recent_data(faketime, store, database_url, shift):
    host = create_host(store, 1)
    cursor = store.load_changes(None).cursor
    store.write(providers.update, host, name="another name")
    store.replace_allocations([make_claim(str(uuid.uuid4()), {host: 1})])
    feed_rows = rows(store, feed)
    assert on_a_machine(shift, database_url) == {"pruned": 0, "orphaned": 0}
    assert on_a_machine("+0h", database_url) == {"pruned": 0, "orphaned": 0}
    assert feed_rows <= rows(store, feed)
    assert not store.load_changes(cursor).complete
    for row in rows(store, feed) | rows(store, resource_providers):
        assert abs(row.created_at - utc_now()) < timedelta(hours=1)


def on_a_machine(shift, url):
    """Return the findings of a worker on a machine with a wrong clock."""
    command = ["faketime", "-f", shift, sys.executable, "-c", MACHINE, url]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(result.stdout)


def rows(store, table):
    with store.engine.connect() as connection:
        return set(connection.execute(sa.select(table)))
