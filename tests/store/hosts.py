# SPDX-License-Identifier: Apache-2.0
"""Hosts, claims and times for tests of the store."""

from datetime import UTC, datetime
from uuid import uuid4

from treeclaim.model.claim import HOLD_TYPE, ConsumerClaim
from treeclaim.model.parts import INVENTORIES
from treeclaim.model.provider import Inventory
from treeclaim.store.operations.providers import providers
from treeclaim.store.operations.providers.entries import write_part
from treeclaim.store.operations.providers.part_writer import (
    GenerationRule,
    InventoryScope,
    WriteRules,
)


def create_host(store, stock=None, *, uuid=None, name=None, parent=None):
    """Create a provider, with units of VCPU or with inventories by class; return its UUID."""
    uuid = uuid or str(uuid4())
    store.write(providers.create, uuid=uuid, name=name or uuid, parent_uuid=parent)
    if stock is not None:
        inventories = {"VCPU": Inventory(stock)} if isinstance(stock, int) else stock
        store.write(write_inventories, uuid, inventories, 0)
    return uuid


def write_inventories(
    transaction, provider, inventories, generation=None, *, scope=InventoryScope.ALL
):
    """Write inventories of a provider as the API does."""
    rules = WriteRules(GenerationRule.ALWAYS, scope=scope, rewrites_equal=True)
    write_part(transaction, provider, INVENTORIES, inventories, generation, rules=rules)


def make_claim(consumer, amounts, generation=None, resource_class="VCPU", **fields):
    """Return a claim of a consumer for amounts by host, or of a hold with the field `hold`."""
    allocations = {host: {resource_class: amount} for host, amount in amounts.items()}
    kind = HOLD_TYPE if "hold" in fields else "INSTANCE"
    owned = {"project_id": "p", "user_id": "u", "consumer_type": kind, **fields}
    return ConsumerClaim(consumer, allocations, generation=generation, **owned)


def utc_now():
    """Return the present time as stored in tables: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)
