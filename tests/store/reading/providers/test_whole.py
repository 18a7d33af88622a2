# SPDX-License-Identifier: Apache-2.0
"""Loading all providers as arrays equals loading them by id."""

import json
import random
import uuid
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Changes
from treeclaim.store.reading.providers import whole
from treeclaim.store.reading.providers.records import load_providers
from treeclaim.store.schema import tables

NAMES = ['quote " and \\', "new\nline", "comma, [brackets]", "umlaut ä€", "a\x1fb", "'", "null"]
RATIOS = [1.0, 16.0, 1.5, 0.1, 1 / 3, 1.1, 2.718281828459045, 3.4e38, 1e-7, 123456.789]
VALUES = [
    1,
    True,
    "1",
    0,
    False,
    "",
    2**53 - 1,
    -5,
    "true",
    "\N{GRINNING FACE}" * 255,
    "\\u0041'\"",
]
"""Values of attributes; an empty text is none."""

STRANGE = ["", "{", "null", "1.5", "[1]", '"\\ud800"', str(2**53), '""', '"a\\u0000"']
"""A value that no attribute has, though it may be in the table."""

KINDS = range(1, 6)
"""Numbers of aggregates, traits and attributes."""

A_DAY = datetime(2026, 11, 22, 10, 30, 0)  # noqa: DTZ001 - the tables have naive times


@pytest.fixture(autouse=True)
def _several_pieces(monkeypatch):
    """Load few providers at a time, so that there are several chunks."""
    monkeypatch.setattr(whole, "_PROVIDERS_AT_ONCE", 7)
    monkeypatch.setattr(whole, "_PROVIDERS_WITH_ATTRIBUTES", 3)


def write(store, seed):
    """Write trees of all shapes, old rows, and rows without a provider."""
    dice = random.Random(seed)
    ids = sorted(dice.sample(range(1, 400), 40))
    # SQLite checks foreign keys only on the service's connections.
    # The name of the server's encoding does not describe the text.
    url = store.engine.url
    utf8 = {"client_encoding": "UTF8"} if url.get_backend_name() == "postgresql" else {}
    engine = sa.create_engine(url, connect_args=utf8)
    with engine.begin() as connection:
        if connection.dialect.name == "mysql":
            connection.exec_driver_sql("SET SESSION foreign_key_checks = 0")
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")

        def insert(table, rows):
            connection.execute(sa.insert(table), rows)

        insert(tables.resource_providers, [provider(number, ids, dice) for number in ids])
        pairs = [(number, kind) for number in [*ids, 1000] for kind in range(5)]
        stocked_pairs = [*dice.sample(pairs, 100), (1000, 9)]
        insert(tables.inventories, [inventory(*pair, dice) for pair in stocked_pairs])
        used_pairs = dice.choices(pairs, k=60)
        insert(tables.allocations, [allocation(*pair, dice) for pair in used_pairs])
        aggregates = [{"id": number, "uuid": str(uuid.UUID(int=99 - number))} for number in KINDS]
        insert(tables.placement_aggregates, aggregates)
        linked_pairs = dice.sample([(number, kind) for number in ids for kind in KINDS], 70)
        for table, column in (
            (tables.resource_provider_aggregates, "aggregate_id"),
            (tables.resource_provider_traits, "trait_id"),
        ):
            insert(
                table,
                [{"resource_provider_id": number, column: kind} for number, kind in linked_pairs],
            )
        insert(tables.attributes, [attribute(*pair, dice) for pair in [*linked_pairs, (1000, 1)]])
        named_pairs = [(ids[0], "Unnamed"), (ids[0], "in")]
        named_pairs += [(number, f"n{at}") for number in ids[-2:] for at in range(9)]
        insert(tables.attributes, [row_of(*pair, "1") for pair in named_pairs])
    engine.dispose()
    return ids


def provider(number, ids, dice):
    """Draw a row of a provider; some parents and roots are missing."""
    parent = dice.choice([None, None, 999, *(earlier for earlier in ids if earlier < number)])
    return {
        "id": number,
        "uuid": str(uuid.UUID(int=dice.getrandbits(128))),
        "name": f"{dice.choice(NAMES)} {number}" if dice.random() < 0.9 else None,
        "generation": dice.choice([None, 0, 7, 2**31 - 1]),
        "root_provider_id": dice.choice([None, number]),
        "parent_provider_id": parent,
        "created_at": dice.choice([None, A_DAY]),
        "updated_at": dice.choice([None, A_DAY + timedelta(seconds=dice.randint(0, 10**6))]),
    }


def inventory(number, kind, dice):
    """Draw a row of an inventory with any amounts."""
    return {
        "resource_provider_id": number,
        "resource_class_id": kind,
        "total": dice.randint(1, 2**31 - 1),
        "reserved": dice.randint(0, 2**31 - 1),
        "min_unit": dice.randint(1, 9),
        "max_unit": dice.randint(1, 2**31 - 1),
        "step_size": dice.randint(1, 9),
        "allocation_ratio": dice.choice([*RATIOS, dice.random() * 100]),
        "created_at": dice.choice([None, A_DAY]),
    }


def allocation(number, kind, dice):
    """Draw a row of an allocation of a new consumer."""
    key = {"resource_provider_id": number, "resource_class_id": kind}
    return {**key, "consumer_id": str(uuid.uuid4()), "used": dice.randint(1, 2**31 - 1)}


def row_of(number, name, text):
    return {"resource_provider_id": number, "name": name, "value": text}


def attribute(number, kind, dice):
    """Draw a row of an attribute, sometimes with a value from outside of the service."""
    text = json.dumps(dice.choice(VALUES)) if dice.random() < 0.8 else dice.choice(STRANGE)
    return row_of(number, f"name_{kind}", text)


def typed(records):
    """Return attributes as texts, in which 1 and true differ."""
    return [json.dumps(record.attributes, sort_keys=True) for record in records]


def columns_of(forest):
    """Return the data that a search reads, of existing providers."""
    rows = forest.living_rows.tolist()
    uuids = {row: forest.uuid_of(row) for row in rows}

    def by_uuid(column, values):
        pairs = zip(column.tolist(), values.tolist(), strict=True)
        return {uuids[row]: value for row, value in pairs if row in uuids}

    return {
        "order": list(uuids.values()),
        "sizes": (forest.end.values[rows] - rows).tolist(),
        "classes": {
            number: (
                by_uuid(pairs.row.values, pairs.free.values),
                by_uuid(pairs.row.values, pairs.fits(slice(None), 6)),
            )
            for number, pairs in forest.classes.items()
        },
        "traits": {
            trait: [uuids[row] for row in forest.rows_with_trait(trait)] for trait in range(6)
        },
        "aggregates": {
            name: [uuids[row] for row in forest.rows_in_aggregate(name)]
            for name in forest.links["aggregates"].lists()
        },
        "found": [
            forest.row_of(uuids[row]) == forest.row_of_name(name) == row
            for row, name in zip(rows, forest.names(rows), strict=True)
            if name
        ],
    }


@pytest.mark.parametrize("seed", range(3))
def test_providers_read_as_arrays_equal_those_read_singly(store, seed):
    ids = write(store, seed)
    changes = store.load_changes(None)
    at_once, one_by_one = Forest(), Forest()
    at_once.apply(changes)
    records = store.read(load_providers, ids)
    one_by_one.apply(
        Changes(
            changes.cursor,
            complete=True,
            records=records,
            removed=(),
            catalogue=changes.catalogue,
        )
    )
    assert len(at_once) == len(one_by_one) == 40
    assert at_once.records() == one_by_one.records()
    assert typed(at_once.records()) == typed(one_by_one.records())
    of_last = max(records, key=lambda record: record.id).attributes
    assert {f"n{at}" for at in range(9)} <= of_last.keys()
    texts = {repr(value) for record in records for value in record.attributes.values()}
    assert {repr(value) for value in VALUES if value != ""} >= texts > {"1", "True", "'1'"}
    assert {name for record in records for name in record.attributes}.isdisjoint({"in", "Unnamed"})
    columns = columns_of(at_once)
    assert all(columns["found"])
    assert columns == columns_of(one_by_one)


def test_an_empty_database_is_an_empty_forest(store):
    forest = Forest()
    forest.apply(store.load_changes(None))
    assert (len(forest), forest.records()) == (0, [])
    assert forest.row_of(str(uuid.uuid4())) is None
