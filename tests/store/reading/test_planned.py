# SPDX-License-Identifier: Apache-2.0
"""All consumers, or some, are read with all that plans ask of them, in pages of any size."""

import uuid

import pytest

from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.extension.holds import HOLD_TYPE, HoldTerms
from treeclaim.model.extension.planning import (
    AllocationColumns,
    HoldsRead,
    OwnerColumns,
    RequestColumns,
)
from treeclaim.model.inventory import Inventory
from treeclaim.store.operations.providers import inventories, providers
from treeclaim.store.reading import planned

HOST, HOLD, DRAWER, OTHER = (str(uuid.uuid5(uuid.UUID(int=7), name)) for name in "abcd")


def claimed(store, consumer, amounts, kind, **more):
    claim = ConsumerClaim(consumer, {HOST: amounts}, "p", "u", None, kind, **more)
    store.replace_allocations([claim])


@pytest.fixture
def filled(store):
    store.write(providers.create, uuid=HOST, name="host", parent_uuid=None)
    stocks = {"VCPU": Inventory(16), "MEMORY_MB": Inventory(64)}
    store.write(inventories.write_inventories, HOST, stocks, 0, least_capacity=1)
    terms = HoldTerms(returns=True)
    claimed(store, HOLD, {"VCPU": 8}, HOLD_TYPE, knows_holds=True, hold=terms)
    drawing = {"knows_holds": True, "from_holds": (HOLD,), "request": ("resources=VCPU:3",)}
    claimed(store, DRAWER, {"VCPU": 3}, "INSTANCE", **drawing)
    claimed(store, OTHER, {"VCPU": 1, "MEMORY_MB": 5}, "MIGRATION")
    return store


def joined(parts, kind, *columns):
    """The rows of all parts of a kind."""
    return sorted(
        row
        for part in parts
        if isinstance(part, kind)
        for row in zip(*(getattr(part, column) for column in columns), strict=True)
    )


@pytest.mark.parametrize("at_once", [1, 1000])
def test_all_consumers_are_read_with_all_parts(filled, at_once, monkeypatch):
    monkeypatch.setattr(planned, "_AT_ONCE", at_once)
    parts = filled.read(lambda reading: list(planned.planned_consumers(reading)))
    held = joined(parts, AllocationColumns, "consumer", "used")
    assert held == sorted([(HOLD, 5), (DRAWER, 3), (OTHER, 1), (OTHER, 5)])
    owners = joined(parts, OwnerColumns, "uuid", "project", "type", "generation")
    kinds = [(HOLD, HOLD_TYPE), (DRAWER, "INSTANCE"), (OTHER, "MIGRATION")]
    assert [(owner[0], owner[2]) for owner in owners] == sorted(kinds)
    assert {owner[1] for owner in owners} == {"p"}
    assert joined(parts, RequestColumns, "consumer", "request") == [
        (DRAWER, '["resources=VCPU:3"]')
    ]
    assert parts[-1] == HoldsRead(frozenset({HOLD}), {DRAWER: {HOLD: {HOST: {"VCPU": 3}}}})


def test_selected_consumers_are_read_with_all_parts(filled):
    parts = filled.read(lambda reading: list(planned.planned_consumers(reading, [DRAWER])))
    assert joined(parts, AllocationColumns, "consumer", "used") == [(DRAWER, 3)]
    assert joined(parts, OwnerColumns, "uuid", "type") == [(DRAWER, "INSTANCE")]
    assert parts[-1].drawn == {DRAWER: {HOLD: {HOST: {"VCPU": 3}}}}
