# SPDX-License-Identifier: Apache-2.0
"""Defects to plant, each with clients to whom it shows: what exploration must find.

Most were in the store once. Whoever makes exploration cheaper shows with them that nothing is lost.
"""

from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from tests.store.schedules.world import Operation, World, script
from tests.store.schedules.worlds import HOST, WORLDS
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.operations.allocations import consumers
from treeclaim.store.operations.catalogue import resource_classes
from treeclaim.store.operations.locks import provider_rows
from treeclaim.store.schema import tables


@dataclass(frozen=True)
class Defect:
    """A change of the store that breaks a promise.

    Attributes:
        name: The defect.
        plant: Makes the change, with a `MonkeyPatch` and a place.
        world: Where it shows.
        scripts: To which clients.
        databases: On which databases.
    """

    name: str
    plant: Callable
    world: World
    scripts: tuple[str, ...]
    databases: tuple[str, ...] = ("postgresql", "mariadb")


_GENERATION = sa.select(tables.resource_providers.c.generation).where(
    tables.resource_providers.c.uuid == sa.bindparam("provider")
)
SET_GENERATION = (
    sa.update(tables.resource_providers)
    .where(tables.resource_providers.c.uuid == sa.bindparam("provider"))
    .values(generation=sa.bindparam("next"))
)


def _without_lock(statement):
    if isinstance(statement, CompiledStatement):
        return CompiledStatement(_without_lock(statement._statement))
    copy = statement._generate()
    copy._for_update_arg = None
    return copy


def _new_consumers_are_not_locked(patch, _place):
    patch.setattr(consumers, "lock_missing", lambda *_: None)


def _known_consumers_are_not_locked(patch, _place):
    patch.setattr(consumers, "_LOCK", _without_lock(consumers._LOCK))


def _providers_are_not_locked(patch, _place):
    patch.setattr(provider_rows, "_LOCK_IN_ORDER", _without_lock(provider_rows._LOCK_IN_ORDER))


def _classes_are_not_locked(patch, _place):
    patch.setattr(resource_classes, "_LOCKED", _without_lock(resource_classes._LOCKED))


def _classes_are_deleted_by_id(patch, _place):
    by_id = sa.delete(tables.resource_classes).where(
        tables.resource_classes.c.id == sa.bindparam("class_id"),
        sa.bindparam("known_name") == sa.bindparam("known_name"),
    )
    patch.setattr(resource_classes, "_DELETE", by_id)


def _nothing(_patch, _place):
    """The defect is in the clients."""


def _count_in_two_transactions(session):
    """Raise a generation that was read before the transaction."""
    generation = session.store.read(ReadTransaction.scalar, _GENERATION, provider=HOST)
    session.store.write(_raise, generation + 1)


def _raise(transaction, generation):
    transaction.execute(SET_GENERATION, provider=HOST, next=generation)
    transaction.touch_providers([1])


def _counters():
    world = World("counters")
    world.provider(HOST, VCPU=8)
    world.add(script("count", Operation((), _count_in_two_transactions)))
    return world


DEFECTS = (
    Defect(
        "new consumers are not locked",
        _new_consumers_are_not_locked,
        WORLDS["claims-absent"],
        ("put-null", "post-exchange"),
    ),
    Defect(
        "known consumers are not locked",
        _known_consumers_are_not_locked,
        WORLDS["claims-present"],
        ("move", "put-empty"),
    ),
    Defect(
        "providers are not locked",
        _providers_are_not_locked,
        WORLDS["claims-absent"],
        ("put-null", "put-other"),
    ),
    Defect(
        "classes are not locked",
        _classes_are_not_locked,
        WORLDS["classes-free"],
        ("add-inventory", "delete-class"),
    ),
    Defect(
        "classes are deleted by id",
        _classes_are_deleted_by_id,
        WORLDS["classes-free"],
        ("delete-class", "swap-class"),
    ),
    Defect(
        "what is written was read in another transaction",
        _nothing,
        _counters(),
        ("count", "count"),
        ("sqlite", "postgresql", "mariadb"),
    ),
)
