# SPDX-License-Identifier: Apache-2.0
"""Consumers that have allocations, and the number of queries that find them."""

import uuid

import sqlalchemy as sa

from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.inventory import Inventory
from treeclaim.store.operations.allocations import claims
from treeclaim.store.operations.providers import inventories, providers
from treeclaim.store.reading.consumers import StoredHolder, holders_among


def names(count):
    """Uuids that nobody has."""
    return sorted(str(uuid.uuid4()) for _ in range(count))


def asked(store, uuids):
    """Who holds something of some consumers, and how many queries that took."""
    seen = []

    def note(_connection, _cursor, statement, *_):
        seen.append(statement)

    sa.event.listen(store.engine, "before_cursor_execute", note)
    found = store.read(holders_among, uuids)
    sa.event.remove(store.engine, "before_cursor_execute", note)
    return found, sum(statement.startswith("SELECT") for statement in seen)


def test_of_new_consumers_one_query_is_enough(store):
    assert asked(store, names(3)) == ({}, 1)


def test_who_holds_something_is_told_with_its_owners(store):
    host, holder, *others = names(4)
    store.write(providers.create, uuid=host, name=host, parent_uuid=None)
    store.write(
        inventories.replace_all, host, 0, {"VCPU": Inventory(8)}, zero_capacity_allowed=False
    )
    amounts = {host: {"VCPU": 2}}
    claim = ConsumerClaim(holder, amounts, "project", "user", None, "INSTANCE")
    store.write(claims.replace, [claim])
    held = {holder: StoredHolder(amounts, "project", "user", "INSTANCE", 1)}
    assert asked(store, sorted([holder, *others])) == (held, 2)
