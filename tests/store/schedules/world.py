# SPDX-License-Identifier: Apache-2.0
"""Worlds: initial rows, and scripts that run concurrently on them."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass

from tests.reference.worked_examples import world_of
from tests.store.schedules.sessions import Session
from treeclaim.model.errors import TreeclaimError

GENERATION = 5
"""The initial generation of all providers."""


@dataclass(frozen=True)
class Operation:
    """A call of the store.

    Attributes:
        function: The operation of the store; None for a reader or a repair.
        act: Runs the operation in a session, and returns the result of the client.
    """

    function: Callable | None
    act: Callable[[Session], object]

    def run(self, session):
        """Return the result of the client: that of the operation, or the refusal."""
        try:
            return str(self.act(session))
        except TreeclaimError as error:
            return text_of_refusal(error)


def text_of_refusal(error):
    return f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class Script:
    """The calls of a session.

    Attributes:
        operations: The calls in their order; serial orders may separate them.
        group: Runs all operations in one transaction, and returns the result of each client; None to run them
            one after the other.
    """

    operations: tuple[Operation, ...]
    group: Callable[[Session], tuple[str, ...]] | None = None

    def run(self, session):
        """Run the calls in a session; return the result of each."""
        if self.group is not None:
            return self.group(session)
        return tuple([operation.run(session) for operation in self.operations])


class World:
    """Initial rows, and scripts that run concurrently on them.

    Args:
        name: Its name in tests.
        providers: Trees with inventories, traits and aggregates, in the notation of contract page 95.
        shares_a_shard: Whether all sessions advance one shard of the feed, or each a separate one.

    Attributes:
        rows: Rows by name of table.
        scripts: Scripts by name.
        explored: Scripts whose pairs another world with the same rows explores.
    """

    def __init__(self, name, providers="", *, shares_a_shard=False):
        self.name = name
        self.shares_a_shard = shares_a_shard
        self.rows = defaultdict(list)
        self.scripts = {}
        self.explored = set()
        for number, standard in enumerate(("VCPU", "MEMORY_MB")):
            self.add_row("resource_classes", id=number, name=standard)
        self.add_row("traits", id=1, name="MISC_SHARES_VIA_AGGREGATE")
        for table in ("projects", "users"):
            self.add_row(table, id=1, external_id="known")
        for provider in world_of(providers).providers if providers else ():
            self._add_provider(provider)

    def add_row(self, table, **row):
        self.rows[table].append(row)

    def _add_provider(self, provider):
        number = len(self.rows["resource_providers"]) + 1
        uuid, parent, root = provider.name, None, number
        if provider.parent is not None:
            parent = self.id_of("resource_providers", uuid=provider.parent)
            root = self.rows["resource_providers"][parent - 1]["root_provider_id"]
        above = {"parent_provider_id": parent, "root_provider_id": root}
        row = {"id": number, "uuid": uuid, "name": f"name of {uuid}", "generation": GENERATION}
        self.add_row("resource_providers", **row, **above)
        for name, stock in provider.stock.items():
            units = asdict(stock) | {"id": len(self.rows["inventories"]) + 1}
            del units["used"]
            class_id = self.id_of("resource_classes", name=name)
            key = {"resource_provider_id": number, "resource_class_id": class_id}
            self.add_row("inventories", **key, **units)
        for name in sorted(provider.traits):
            trait = {"trait_id": self.id_of("traits", name=name)}
            self.add_row("resource_provider_traits", resource_provider_id=number, **trait)
        for name in sorted(provider.aggregates):
            aggregate = {"aggregate_id": self.id_of("placement_aggregates", uuid=name)}
            self.add_row("resource_provider_aggregates", resource_provider_id=number, **aggregate)

    def id_of(self, table, **name):
        """Return the id of the row with a name; add a missing row."""
        ((column, value),) = name.items()
        for row in self.rows[table]:
            if row[column] == value:
                return row["id"]
        # The first id of a custom class. After a deletion, the next class gets the same id.
        number = 10_000 if table == "resource_classes" else len(self.rows[table]) + 1
        self.add_row(table, id=number, **name)
        return number

    def add_consumer(self, uuid, resource_class="VCPU", *, is_recorded=True, **amounts):
        """Add a consumer with allocations by name of provider, and its record if `is_recorded`."""
        if is_recorded:
            owner = {"project_id": 1, "user_id": 1, "generation": 1}
            self.add_row("consumers", id=len(self.rows["consumers"]) + 1, uuid=uuid, **owner)
        for provider, used in amounts.items():
            self.add_row(
                "allocations",
                id=len(self.rows["allocations"]) + 1,
                resource_provider_id=self.id_of("resource_providers", uuid=provider),
                consumer_id=uuid,
                resource_class_id=self.id_of("resource_classes", name=resource_class),
                used=used,
            )

    def add(self, scripts, *, are_explored=False):
        """Add scripts by name, each as a script, an operation, or operations in their order."""
        for name, calls in scripts.items():
            operations = (calls,) if isinstance(calls, Operation) else calls
            self.scripts[name] = calls if isinstance(calls, Script) else Script(operations)
        if are_explored:
            self.explored |= scripts.keys()
