# SPDX-License-Identifier: Apache-2.0
"""Writes worlds, servers and holds straight into a database: a hundred thousand trees over HTTP would take hours."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import orjson
import sqlalchemy as sa

from tests.clouds import World
from treeclaim.model.claim import HOLD_TYPE
from treeclaim.model.names import FIRST_CUSTOM_CLASS_ID
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema import tables

_AT_ONCE = 5_000
_OWNER = "bench"
_SERVER_TYPE = "INSTANCE"
_FIRST_SERVER, _FIRST_HOLD = 1 << 64, 2 << 64
_OF_HOLD = {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 10}
_OF_SERVER = {"VCPU": 1, "MEMORY_MB": 512}

Amounts = Mapping[str, int]
"""By resource class."""


def write_world(database: str, world: World) -> None:
    """Make the schema and the standard names in an empty database, and a world in it."""
    store = Store(DatabaseSettings(database, sqlite_synchronous=False))
    schema.sync(store.engine)
    store.write(standard_names.sync_standard_names)
    with store.engine.begin() as connection:
        _write_providers(connection, world)
        held = {f"c{p.uuid[1:]}": (p.uuid, p.used) for p in world.providers if p.used}
        if held:
            _write_consumers(connection, held)
        for number in range(1, world.copies):
            _copy(connection, len(world.providers), number)
        if connection.dialect.name == "postgresql":
            _continue_ids(connection)
    store.close()


def write_servers(database: str, world: World, count: int) -> None:
    """Place a number of servers on hosts in turn."""
    with _connected(database) as connection:
        held = _in_turn(world, _uuids(_FIRST_SERVER, count), _OF_SERVER)
        _write_consumers(connection, held, _SERVER_TYPE)


def write_promises(database: str, world: World, *, holds: int, requests: int) -> None:
    """Write numbers of holds without an end and of kept requests, on hosts in turn."""
    request = orjson.dumps([world.query]).decode()
    with _connected(database) as connection:
        uuids = uuids_of_holds(holds)
        _write_consumers(connection, _in_turn(world, uuids, _OF_HOLD), HOLD_TYPE)
        _insert(connection, tables.holds, ({"uuid": uuid, "returns": True} for uuid in uuids))
        servers = _uuids(_FIRST_SERVER, requests)
        kept = ({"consumer_uuid": server, "request": request} for server in servers)
        _insert(connection, tables.requests, kept)
        if connection.dialect.name != "mysql":
            connection.execute(sa.text("ANALYZE"))


def uuids_of_holds(count: int) -> Sequence[str]:
    """Return the uuids of the first of the holds that were written."""
    return _uuids(_FIRST_HOLD, count)


def _uuids(first: int, count: int) -> Sequence[str]:
    return [str(uuid.UUID(int=first + number)) for number in range(count)]


def _in_turn(
    world: World, uuids: Sequence[str], amounts: Amounts
) -> Mapping[str, tuple[str, Amounts]]:
    """Return consumers that have the same amounts of one host after the other."""
    hosts = [provider.uuid for provider in world.providers]
    return {uuid: (hosts[at % len(hosts)], amounts) for at, uuid in enumerate(uuids)}


@contextmanager
def _connected(database: str) -> Iterator[sa.Connection]:
    store = Store(DatabaseSettings(database, sqlite_synchronous=False))
    with store.engine.begin() as connection:
        yield connection
    store.close()


def _continue_ids(connection: sa.Connection) -> None:
    """Advance PostgreSQL's sequences behind the written ids: its sequences know nothing of them."""
    for table in (tables.resource_providers, tables.placement_aggregates):
        last = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 1)).scalar_subquery()
        sequence = sa.func.pg_get_serial_sequence(table.name, "id")
        connection.execute(sa.select(sa.func.setval(sequence, last)))


def _copy(connection: sa.Connection, count: int, number: int) -> None:
    """Copy all providers without their claims under other names, in the database."""
    changed: dict[str, Any] = {
        "uuid": lambda column: sa.literal(f"{number:08x}") + sa.func.substr(column, 9),
        "name": lambda column: sa.literal(f"copy{number}-") + column,
    }
    for name in ("id", "root_provider_id", "parent_provider_id", "resource_provider_id"):
        changed[name] = lambda column: column + count * number
    for table, key in (
        (tables.resource_providers, "id"),
        (tables.inventories, "resource_provider_id"),
        (tables.resource_provider_traits, "resource_provider_id"),
        (tables.resource_provider_aggregates, "resource_provider_id"),
    ):
        # An inventory gets an id of its own.
        columns = [column for column in table.c if column.name != "id" or key == "id"]
        values = [changed.get(column.name, lambda column: column)(column) for column in columns]
        rows = sa.select(*values).where(table.c[key] <= count)
        connection.execute(sa.insert(table).from_select(columns, rows))


def _write_providers(connection: sa.Connection, world: World) -> None:
    providers = world.providers
    ids = {provider.uuid: number for number, provider in enumerate(providers, 1)}
    classes = _ids_of_names(
        connection, tables.resource_classes, (name for p in providers for name in p.inventories)
    )
    traits = _ids_of_names(
        connection, tables.traits, (name for p in providers for name in p.traits)
    )
    named = dict.fromkeys(uuid for provider in providers for uuid in provider.aggregates)
    aggregates = {uuid: number for number, uuid in enumerate(named, 1)}
    roots: dict[str, int] = {}
    for provider in providers:
        roots[provider.uuid] = roots.get(provider.parent or "", ids[provider.uuid])
    _insert(
        connection,
        tables.resource_providers,
        (
            {
                "id": ids[provider.uuid],
                "uuid": provider.uuid,
                "name": provider.name,
                "generation": 1,
                "root_provider_id": roots[provider.uuid],
                "parent_provider_id": None if provider.parent is None else ids[provider.parent],
            }
            for provider in providers
        ),
    )
    _insert(
        connection,
        tables.inventories,
        (
            {
                "resource_provider_id": ids[provider.uuid],
                "resource_class_id": classes[name],
                "total": total,
                "reserved": 0,
                "min_unit": 1,
                "max_unit": 2**31 - 1,
                "step_size": 1,
                "allocation_ratio": 1.0,
            }
            for provider in providers
            for name, total in provider.inventories.items()
        ),
    )
    _insert(
        connection,
        tables.placement_aggregates,
        ({"id": number, "uuid": uuid} for uuid, number in aggregates.items()),
    )
    _insert(
        connection,
        tables.resource_provider_traits,
        (
            {"resource_provider_id": ids[provider.uuid], "trait_id": traits[name]}
            for provider in providers
            for name in provider.traits
        ),
    )
    _insert(
        connection,
        tables.resource_provider_aggregates,
        (
            {"resource_provider_id": ids[provider.uuid], "aggregate_id": aggregates[uuid]}
            for provider in providers
            for uuid in provider.aggregates
        ),
    )


def _ids_of_names(
    connection: sa.Connection, table: sa.Table, names: Iterable[str]
) -> dict[str, int]:
    """Write the names of this cloud alone; return the ids of all names."""
    custom = enumerate(sorted({name for name in names if name.startswith("CUSTOM_")}))
    if table is tables.resource_classes:
        _insert(
            connection, table, ({"name": n, "id": FIRST_CUSTOM_CLASS_ID + at} for at, n in custom)
        )
    else:
        _insert(connection, table, ({"name": name} for _, name in custom))
    return _ids(connection, table, table.c.name)


def _ids(connection: sa.Connection, table: sa.Table, key: sa.Column[Any]) -> dict[str, int]:
    return dict(connection.execute(sa.select(key, table.c.id)).all())


def _write_consumers(
    connection: sa.Connection,
    held: Mapping[str, tuple[str, Amounts]],
    consumer_type: str | None = None,
) -> None:
    """Write consumers, each with its allocation of one provider."""
    owner: dict[str, Any] = {"generation": 1}
    for column, table in (("project_id", tables.projects), ("user_id", tables.users)):
        owner[column] = _id_of(connection, table, external_id=_OWNER)
    if consumer_type is not None:
        owner["consumer_type_id"] = _id_of(connection, tables.consumer_types, name=consumer_type)
    _insert(connection, tables.consumers, ({"uuid": uuid} | owner for uuid in held))
    providers = _ids(connection, tables.resource_providers, tables.resource_providers.c.uuid)
    classes = _ids(connection, tables.resource_classes, tables.resource_classes.c.name)
    _insert(
        connection,
        tables.allocations,
        (
            {
                "resource_provider_id": providers[provider],
                "consumer_id": consumer,
                "resource_class_id": classes[name],
                "used": amount,
            }
            for consumer, (provider, amounts) in held.items()
            for name, amount in amounts.items()
        ),
    )


def _id_of(connection: sa.Connection, table: sa.Table, **values: str) -> int:
    """Return the id of a row, which is written if it is missing."""
    wanted = sa.select(table.c.id).filter_by(**values)
    if connection.scalar(wanted) is None:
        _insert(connection, table, [values])
    return int(connection.execute(wanted).scalar_one())


def _insert(connection: sa.Connection, table: sa.Table, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows, many at once; those of tables with such a column were made now."""
    made = {"created_at": datetime.now(UTC).replace(tzinfo=None)}
    times = made if "created_at" in table.c else {}
    waiting = [times | row for row in rows]
    for first in range(0, len(waiting), _AT_ONCE):
        connection.execute(sa.insert(table), waiting[first : first + _AT_ONCE])
