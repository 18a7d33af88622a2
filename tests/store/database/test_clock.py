# SPDX-License-Identifier: Apache-2.0
"""The clock of one machine decides nothing for the others: ages are by the database's clock."""

import json
import subprocess
import sys
import uuid
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.databases import EACH_SERVER, empty_database
from tests.service import schema_on
from tests.store.hosts import create_host
from tests.store.upkeep import utc_now
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.provider import Inventory
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.providers import providers
from treeclaim.store.schema.tables import feed, resource_providers

MACHINE = """
import json, sys, uuid
from treeclaim.model.extension.audit import Living
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.audit.findings import find_orphans
from treeclaim.store.operations.providers import providers
from treeclaim.store.housekeeping import KEEP

store = Store(DatabaseSettings(sys.argv[1]))
name = str(uuid.uuid4())
store.write(providers.create, uuid=name, name=name, parent_uuid=None)
living = Living({"INSTANCE": frozenset()}, older_than=3600)
found = store.read(find_orphans, 10, living)
print(json.dumps({"pruned": store.housekeeper.prune(KEEP), "orphaned": found.count}))
store.close()
"""
"""Work as a worker does on a machine: write, look for orphans, and prune."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_SERVER)
@pytest.mark.parametrize("shift", ["+30h", "-30h"])
def test_machine_with_wrong_clock_does_not_prune_recent_data(faketime, kind, shift, tmp_path):
    with empty_database(kind, tmp_path) as url:
        schema_on(url)
        store = Store(DatabaseSettings(url))
        host = create_host(store)
        cursor = store.changes(None).cursor
        store.write(providers.update, host, name="another name")
        hold(store, host)
        feed_rows = rows(store, feed)
        assert on_a_machine(shift, url) == {"pruned": 0, "orphaned": 0}
        assert on_a_machine("+0h", url) == {"pruned": 0, "orphaned": 0}
        assert feed_rows <= rows(store, feed)
        assert not store.changes(cursor).complete
        hour = timedelta(hours=1)
        assert all(abs(row.created_at - utc_now()) < hour for row in rows(store, feed))
        assert all(
            abs(row.created_at - utc_now()) < hour for row in rows(store, resource_providers)
        )
        store.close()


def on_a_machine(shift, url):
    """Return the findings of a worker on a machine whose clock is off."""
    command = ["faketime", "-f", shift, sys.executable, "-c", MACHINE, url]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(result.stdout)


def hold(store, host):
    """Let a consumer hold something of a provider."""
    stock = Inventory(total=1, reserved=0, min_unit=1, max_unit=1, step_size=1, allocation_ratio=1)
    store.write(providers.write_inventories, host, {"VCPU": stock}, 0)
    held = {host: {"VCPU": 1}}
    consumer = str(uuid.uuid4())
    store.replace_allocations([ConsumerClaim(consumer, held, "p", "u", None, "INSTANCE")])


def rows(store, table):
    with store.engine.connect() as connection:
        return set(connection.execute(sa.select(table)))
