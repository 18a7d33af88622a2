# SPDX-License-Identifier: Apache-2.0
"""Worlds: rows to begin with, and the scripts of the clients that meet there."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from tests.store.schedules.sessions import Session
from treeclaim.model.errors import TreeclaimError

GENERATION = 5
"""The generation of every provider at first."""


@dataclass(frozen=True)
class Operation:
    """A call of the store.

    Attributes:
        functions: Operations of the store, each in a transaction of its own; none for a reader.
        act: Does it in a session, and returns what the client learns.
    """

    functions: tuple[Callable, ...]
    act: Callable[[Session], object]

    def run(self, session):
        """Do it; return what the client learns: the result, or the kind and text of the refusal."""
        try:
            return str(self.act(session))
        except TreeclaimError as error:
            return told(error)


def told(error):
    """Return the reason of a refusal, as a client sees it."""
    return f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class Script:
    """The calls of a session.

    Attributes:
        name: In the names of tests.
        operations: Calls, one after the other; in serial orders each is by itself.
        group: Does all of them in one transaction, and returns what each client learns; None if
            the session does them one after the other.
        grouped: Operations of the store for a group.
    """

    name: str
    operations: tuple[Operation, ...]
    group: Callable[[Session], tuple[str, ...]] | None = None
    grouped: Callable | None = None

    @property
    def functions(self):
        """Return the work of the store for a client."""
        single = [function for operation in self.operations for function in operation.functions]
        return single if self.group is None else [*single, self.grouped]

    def run(self, session):
        """Do it in a session; return what is learned from each operation."""
        if self.group is not None:
            return self.group(session)
        return tuple([operation.run(session) for operation in self.operations])


def script(name, *operations):
    """A client with a name."""
    return Script(name, operations)


class World:
    """Rows to begin with, and scripts that meet there.

    Attributes:
        name: In the names of tests.
        rows: By name of table.
        scripts: By name.
        explored: Scripts whose pairs among themselves another world with the same rows has.
        shares_a_shard: Whether all sessions advance one shard of the feed; otherwise each has its own.
    """

    def __init__(self, name, *, shares_a_shard=False):
        self.name = name
        self.shares_a_shard = shares_a_shard
        self.rows = defaultdict(list)
        self.scripts = {}
        self.explored = set()
        for number, standard in enumerate(("VCPU", "MEMORY_MB")):
            self.rows["resource_classes"].append({"id": number, "name": standard})
        self.rows["traits"].append({"id": 1, "name": "MISC_SHARES_VIA_AGGREGATE"})
        for table in ("projects", "users"):
            self.rows[table].append({"id": 1, "external_id": "known"})

    def add(self, *scripts, are_explored=False):
        """Let some clients take part."""
        self.scripts |= {script.name: script for script in scripts}
        if are_explored:
            self.explored |= {script.name for script in scripts}

    def resource_class(self, name):
        """Add a custom class."""
        self.rows["resource_classes"].append({"id": 10_000, "name": name})

    def provider(self, uuid, parent=None, **totals):
        """Add a provider with inventories; a double underscore is for custom classes."""
        known = {row["uuid"]: row for row in self.rows["resource_providers"]}
        number = len(known) + 1
        above = known.get(parent)
        self.rows["resource_providers"].append(
            {
                "id": number,
                "uuid": uuid,
                "name": f"name of {uuid}",
                "generation": GENERATION,
                "parent_provider_id": None if above is None else above["id"],
                "root_provider_id": number if above is None else above["root_provider_id"],
            }
        )
        for name, total in totals.items():
            self.rows["inventories"].append(
                {
                    "id": len(self.rows["inventories"]) + 1,
                    "resource_provider_id": number,
                    "resource_class_id": self._id("resource_classes", "name", name),
                    "total": total,
                    "reserved": 0,
                    "min_unit": 1,
                    "max_unit": total,
                    "step_size": 1,
                    "allocation_ratio": 1.0,
                }
            )

    def consumer(self, uuid):
        """Add a record of a consumer."""
        self.rows["consumers"].append(
            {
                "id": len(self.rows["consumers"]) + 1,
                "uuid": uuid,
                "project_id": 1,
                "user_id": 1,
                "generation": 1,
            }
        )

    def holds(self, consumer, provider, resource_class, used):
        """Let a consumer hold something; with a record only if `consumer` was called for it."""
        self.rows["allocations"].append(
            {
                "id": len(self.rows["allocations"]) + 1,
                "resource_provider_id": self._id("resource_providers", "uuid", provider),
                "consumer_id": consumer,
                "resource_class_id": self._id("resource_classes", "name", resource_class),
                "used": used,
            }
        )

    def _id(self, table, column, value):
        return next(row["id"] for row in self.rows[table] if row[column] == value)
