# SPDX-License-Identifier: Apache-2.0
"""Servers, holds and kept requests, written straight into a database beside a world's providers."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
import sqlalchemy as sa

from tests.clouds import World
from tests.clouds.bulk import ids_of, insert
from treeclaim.model.claim import HOLD_TYPE
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.schema import tables

_SERVER_TYPE = "INSTANCE"
_PROJECT = "bench"
_FIRST_SERVER, _FIRST_HOLD = 1 << 64, 2 << 64
_OF_HOLD = {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 10}
_OF_SERVER = {"VCPU": 1, "MEMORY_MB": 512}


def uuids_of_holds(count: int) -> Sequence[str]:
    """Return the uuids of the first of the holds that were written."""
    return _uuids(_FIRST_HOLD, count)


def _uuids(first: int, count: int) -> Sequence[str]:
    return [str(uuid.UUID(int=first + number)) for number in range(count)]


def write_servers(database: str, world: World, count: int) -> None:
    """Let so many servers have something of hosts in turn."""
    with _connected(database) as connection:
        connection.execute(sa.insert(tables.consumer_types).values(name=_SERVER_TYPE))
        for table in (tables.projects, tables.users):
            connection.execute(sa.insert(table).values(external_id=_PROJECT))
        servers = _uuids(_FIRST_SERVER, count)
        _write(connection, world, servers, _SERVER_TYPE, _OF_SERVER)


def write_promises(database: str, world: World, *, holds: int, requests: int) -> None:
    """Let hosts in turn have so many holds for ever, and so many servers a kept request."""
    request = orjson.dumps([world.query]).decode()
    with _connected(database) as connection:
        connection.execute(sa.insert(tables.consumer_types).values(name=HOLD_TYPE))
        uuids = _uuids(_FIRST_HOLD, holds)
        _write(connection, world, uuids, HOLD_TYPE, _OF_HOLD)
        insert(connection, tables.holds, ({"uuid": uuid, "returns": True} for uuid in uuids))
        servers = _uuids(_FIRST_SERVER, requests)
        kept = ({"consumer_uuid": server, "request": request} for server in servers)
        insert(connection, tables.requests, kept)
        if connection.dialect.name != "mysql":
            connection.execute(sa.text("ANALYZE"))


@contextmanager
def _connected(database: str) -> Iterator[sa.Connection]:
    store = Store(DatabaseSettings(database, sqlite_synchronous=False))
    with store.engine.begin() as connection:
        yield connection
    store.close()


def _write(
    connection: sa.Connection,
    world: World,
    uuids: Sequence[str],
    consumer_type: str,
    amounts: Mapping[str, int],
) -> None:
    """Write consumers that have the same amounts of one host after the other."""
    owner = {
        "project_id": connection.scalar(sa.select(tables.projects.c.id)),
        "user_id": connection.scalar(sa.select(tables.users.c.id)),
        "consumer_type_id": ids_of(connection, tables.consumer_types)[consumer_type],
        "generation": 1,
    }
    insert(connection, tables.consumers, ({"uuid": uuid} | owner for uuid in uuids))
    hosts = [connection.scalar(_ID, {"uuid": provider.uuid}) for provider in world.providers]
    classes = ids_of(connection, tables.resource_classes)
    insert(connection, tables.allocations, _allocations(uuids, hosts, classes, amounts))


_ID = sa.select(tables.resource_providers.c.id).where(
    tables.resource_providers.c.uuid == sa.bindparam("uuid")
)


def _allocations(
    uuids: Sequence[str],
    hosts: Sequence[Any],
    classes: Mapping[str, int],
    amounts: Mapping[str, int],
) -> Iterator[dict[str, Any]]:
    for number, consumer in enumerate(uuids):
        for name, amount in amounts.items():
            yield {
                "resource_provider_id": hosts[number % len(hosts)],
                "consumer_id": consumer,
                "resource_class_id": classes[name],
                "used": amount,
            }
