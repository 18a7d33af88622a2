# SPDX-License-Identifier: Apache-2.0
"""Defects to plant in the store, each with scripts that reveal it; most are former defects."""

from dataclasses import dataclass

from tests.store.schedules.world import Operation, World
from tests.store.schedules.worlds import HOST, WORLDS
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.operations.allocations import consumers
from treeclaim.store.operations.catalogue import resource_classes
from treeclaim.store.operations.locks import provider_rows


@dataclass(frozen=True)
class Defect:
    """A change of the store that breaks a promise.

    Attributes:
        scripts: Names of the scripts that reveal it in the world.
        patch: Module, attribute and new value; empty if the scripts have the defect.
        databases: Kinds of databases on which it has an effect.
    """

    name: str
    world: World
    scripts: tuple[str, ...]
    patch: tuple = ()
    databases: tuple[str, ...] = ("postgresql", "mariadb")

    def plant(self, patch):
        if self.patch:
            patch.setattr(*self.patch)


_GENERATION = "SELECT generation FROM resource_providers WHERE uuid = :provider"
SET_GENERATION = "UPDATE resource_providers SET generation = :new WHERE uuid = :provider"


def _without_lock(sql):
    return sql.removesuffix(" FOR UPDATE").removesuffix(" FOR KEY SHARE")


_DELETE_BY_ID = """
DELETE FROM resource_classes WHERE id = :class_id AND :known_name = :known_name
"""


def _count_in_two_transactions(session):
    """Raise a generation by a value that an earlier transaction has read."""
    generation = session.store.read(ReadTransaction.scalar, _GENERATION, provider=HOST)
    session.store.write(_raise, generation + 1)


def _raise(transaction, generation):
    transaction.execute(SET_GENERATION, provider=HOST, new=generation)
    transaction.touch_providers([1])


def world_of_counters(operation):
    """Return a world of a host, with one script, "count"."""
    world = World("counters", "host: {VCPU: 8}")
    world.add({"count": operation})
    return world


DEFECTS = (
    Defect(
        "new consumers are not locked",
        WORLDS["claims-absent"],
        ("put-null", "post-exchange"),
        (consumers, "lock_missing", lambda *_: None),
    ),
    Defect(
        "known consumers are not locked",
        WORLDS["claims-present"],
        ("move", "put-empty"),
        (consumers, "_LOCK", _without_lock(consumers._LOCK)),
    ),
    Defect(
        "providers are not locked",
        WORLDS["claims-absent"],
        ("put-null", "put-other"),
        (provider_rows, "_LOCK_IN_ORDER", _without_lock(provider_rows._LOCK_IN_ORDER)),
    ),
    Defect(
        "classes are not locked",
        WORLDS["classes-free"],
        ("add-inventory", "delete-class"),
        (resource_classes, "_LOCK_NAMED", _without_lock(resource_classes._LOCK_NAMED)),
    ),
    Defect(
        "classes are deleted by id",
        WORLDS["classes-free"],
        ("delete-class", "swap-class"),
        (resource_classes, "_DELETE", _DELETE_BY_ID),
    ),
    Defect(
        "the written value was read in another transaction",
        world_of_counters(Operation(None, _count_in_two_transactions)),
        ("count", "count"),
        databases=("sqlite", "postgresql", "mariadb"),
    ),
)
