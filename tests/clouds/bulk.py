# SPDX-License-Identifier: Apache-2.0
"""Writes a world straight into a database: a hundred thousand trees over HTTP would take hours."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from tests.clouds import World
from treeclaim.model.names import FIRST_CUSTOM_CLASS_ID
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema import tables

_AT_ONCE = 5_000
_PROJECT = "bench"
_MOST = 2**31 - 1


def write_world(database: str, world: World) -> None:
    """Make the schema and the standard names in an empty database, and a world in it."""
    store = Store(DatabaseSettings(database, sqlite_synchronous=False))
    schema.sync(store.engine)
    store.write(standard_names.sync_standard_names)
    with store.engine.begin() as connection:
        _write(connection, world)
        for number in range(1, world.copies):
            _copy(connection, len(world.providers), number)
        if connection.dialect.name == "postgresql":
            _continue_ids(connection)
    store.close()


def _continue_ids(connection: sa.Connection) -> None:
    """Let PostgreSQL give ids behind those that were written: its sequences know nothing of them."""
    for table in (
        tables.resource_providers,
        tables.placement_aggregates,
        tables.projects,
        tables.users,
    ):
        last = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 1)).scalar_subquery()
        sequence = sa.func.pg_get_serial_sequence(table.name, "id")
        connection.execute(sa.select(sa.func.setval(sequence, last)))


def _copy(connection: sa.Connection, count: int, number: int) -> None:
    """Let the database write all providers but their claims once more, under other names."""
    offset = count * number
    changed: dict[str, Any] = {
        "id": lambda column: column + offset,
        "uuid": lambda column: sa.literal(f"{number:08x}") + sa.func.substr(column, 9),
        "name": lambda column: sa.literal(f"copy{number}-") + column,
        "root_provider_id": lambda column: column + offset,
        "parent_provider_id": lambda column: column + offset,
        "resource_provider_id": lambda column: column + offset,
    }
    for table, key in (
        (tables.resource_providers, tables.resource_providers.c.id),
        (tables.inventories, tables.inventories.c.resource_provider_id),
        (tables.resource_provider_traits, tables.resource_provider_traits.c.resource_provider_id),
        (
            tables.resource_provider_aggregates,
            tables.resource_provider_aggregates.c.resource_provider_id,
        ),
    ):
        # An inventory gets an id of its own.
        columns = [
            table_column
            for table_column in table.c
            if not (table_column.name == "id" and key.name != "id")
        ]
        values = [
            changed.get(table_column.name, lambda column: column)(table_column)
            for table_column in columns
        ]
        connection.execute(
            sa.insert(table).from_select(columns, sa.select(*values).where(key <= count))
        )


def _write(connection: sa.Connection, world: World) -> None:
    ids = {provider.uuid: number for number, provider in enumerate(world.providers, 1)}
    _insert_custom(
        connection,
        tables.resource_classes,
        (name for provider in world.providers for name in provider.inventories),
    )
    _insert_custom(
        connection,
        tables.traits,
        (name for provider in world.providers for name in provider.traits),
    )
    classes = ids_of(connection, tables.resource_classes)
    traits = ids_of(connection, tables.traits)
    aggregates = {
        uuid: number
        for number, uuid in enumerate(
            dict.fromkeys(uuid for provider in world.providers for uuid in provider.aggregates), 1
        )
    }
    roots: dict[str, int] = {}
    for provider in world.providers:
        roots[provider.uuid] = (
            ids[provider.uuid] if provider.parent is None else roots[provider.parent]
        )
    insert(
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
            for provider in world.providers
        ),
    )
    insert(
        connection,
        tables.inventories,
        (
            {
                "resource_provider_id": ids[provider.uuid],
                "resource_class_id": classes[name],
                "total": total,
                "reserved": 0,
                "min_unit": 1,
                "max_unit": _MOST,
                "step_size": 1,
                "allocation_ratio": 1.0,
            }
            for provider in world.providers
            for name, total in provider.inventories.items()
        ),
    )
    insert(
        connection,
        tables.placement_aggregates,
        ({"id": number, "uuid": uuid} for uuid, number in aggregates.items()),
    )
    own_traits = (
        (ids[provider.uuid], traits[name])
        for provider in world.providers
        for name in provider.traits
    )
    _link(connection, tables.resource_provider_traits, "trait_id", own_traits)
    own_aggregates = (
        (ids[provider.uuid], aggregates[uuid])
        for provider in world.providers
        for uuid in provider.aggregates
    )
    _link(connection, tables.resource_provider_aggregates, "aggregate_id", own_aggregates)
    _write_claims(connection, world, ids, classes)


def _insert_custom(connection: sa.Connection, table: sa.Table, names: Iterable[str]) -> None:
    """Write those of some names that are of this cloud alone."""
    first = FIRST_CUSTOM_CLASS_ID if table is tables.resource_classes else None
    custom = sorted({name for name in names if name.startswith("CUSTOM_")})
    insert(
        connection,
        table,
        (
            {"name": name} | ({} if first is None else {"id": first + number})
            for number, name in enumerate(custom)
        ),
    )


def _link(
    connection: sa.Connection, table: sa.Table, column: str, pairs: Iterable[tuple[int, int]]
) -> None:
    """Write which providers have what: ids of a provider, and of what it has."""
    insert(
        connection,
        table,
        ({"resource_provider_id": provider, column: other} for provider, other in pairs),
    )


def _write_claims(
    connection: sa.Connection, world: World, ids: dict[str, int], classes: dict[str, int]
) -> None:
    """Write what is used already: one consumer for each provider that lends something."""
    busy = [provider for provider in world.providers if provider.used]
    if not busy:
        return
    for table in (tables.projects, tables.users):
        insert(connection, table, [{"id": 1, "external_id": _PROJECT}])
    insert(
        connection,
        tables.consumers,
        (
            {"uuid": _consumer(provider.uuid), "project_id": 1, "user_id": 1, "generation": 1}
            for provider in busy
        ),
    )
    insert(
        connection,
        tables.allocations,
        (
            {
                "resource_provider_id": ids[provider.uuid],
                "consumer_id": _consumer(provider.uuid),
                "resource_class_id": classes[name],
                "used": used,
            }
            for provider in busy
            for name, used in provider.used.items()
        ),
    )


def _consumer(provider: str) -> str:
    return f"c{provider[1:]}"


def ids_of(connection: sa.Connection, table: sa.Table) -> dict[str, int]:
    result = connection.execute(sa.select(table.c.name, table.c.id))
    return dict(result.all())


def insert(connection: sa.Connection, table: sa.Table, rows: Any) -> None:
    """Write rows, many at once; those of tables with such a column were made now."""
    made = {"created_at": datetime.now(UTC).replace(tzinfo=None)}
    same = made if "created_at" in table.c else {}
    for piece in _pieces(same | row for row in rows):
        connection.execute(sa.insert(table), piece)


def _pieces(rows: Iterator[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    piece: list[dict[str, Any]] = []
    for row in rows:
        piece.append(row)
        if len(piece) == _AT_ONCE:
            yield piece
            piece = []
    if piece:
        yield piece
