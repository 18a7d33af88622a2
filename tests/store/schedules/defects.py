# SPDX-License-Identifier: Apache-2.0
"""Defects to plant, each with the clients that reveal it; the exploration must find all of them.

Most of them are former defects of the store.
"""

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
        name: The defect.
        world: Where it shows.
        scripts: To which clients.
        patch: Module, attribute and value that make the change; empty if the defect is in the clients.
        databases: On which databases.
    """

    name: str
    world: World
    scripts: tuple[str, ...]
    patch: tuple = ()
    databases: tuple[str, ...] = ("postgresql", "mariadb")

    def plant(self, patch):
        """Make the change with a `MonkeyPatch`."""
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
    """Raise a generation that was read before the transaction."""
    generation = session.store.read(ReadTransaction.scalar, _GENERATION, provider=HOST)
    session.store.write(_raise, generation + 1)


def _raise(transaction, generation):
    transaction.execute(SET_GENERATION, provider=HOST, new=generation)
    transaction.touch_providers([1])


def world_of_counters(operation):
    """A host, and a client "count"."""
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
        (resource_classes, "_LOCKED", _without_lock(resource_classes._LOCKED)),
    ),
    Defect(
        "classes are deleted by id",
        WORLDS["classes-free"],
        ("delete-class", "swap-class"),
        (resource_classes, "_DELETE", _DELETE_BY_ID),
    ),
    Defect(
        "what is written was read in another transaction",
        world_of_counters(Operation(None, _count_in_two_transactions)),
        ("count", "count"),
        databases=("sqlite", "postgresql", "mariadb"),
    ),
)
