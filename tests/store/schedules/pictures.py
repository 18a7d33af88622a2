# SPDX-License-Identifier: Apache-2.0
"""The contents of the database after a schedule, by names instead of ids, and their invariants."""

from dataclasses import dataclass, replace

import sqlalchemy as sa

from treeclaim.forest.table.forest import Forest
from treeclaim.store.schema import tables

_STALE = "a reader of the feed differs from a full load"

_NAME_COLUMNS = {
    "provider_id": (tables.resource_providers, "uuid"),
    "class_id": (tables.resource_classes, "name"),
    "trait_id": (tables.traits, "name"),
    "aggregate_id": (tables.placement_aggregates, "uuid"),
    "project_id": (tables.projects, "external_id"),
    "user_id": (tables.users, "external_id"),
    "consumer_type_id": (tables.consumer_types, "name"),
}
"""Referenced table and its column of names, by suffix of the referring columns."""

_SHOWN_TABLES = (
    tables.resource_providers,
    tables.resource_classes,
    tables.traits,
    tables.consumers,
    *tables.ROWS_OF_PROVIDERS,
    tables.holds,
    tables.hold_projects,
    tables.draws,
    tables.requests,
    tables.mixes,
    tables.aggregate_names,
)
"""The tables that clients see."""

_HIDDEN = {"id", "slot", "created_at", "updated_at"}
"""Columns that no client sees."""


class _Contents:
    """The rows of a database.

    Attributes:
        rows: Rows by table, with names instead of ids, and for each time whether it is set.
        lost: References to missing rows, as sentences.
    """

    def __init__(self, connection):
        self._names = {
            end: {
                row.id: row[1] for row in connection.execute(sa.select(table.c.id, table.c[name]))
            }
            for end, (table, name) in _NAME_COLUMNS.items()
        }
        self.lost = set()
        self.rows = {
            table.name: [
                {name: self._make_value(table.c[name], row[name]) for name in row.keys() - _HIDDEN}
                for row in connection.execute(sa.select(table)).mappings()
            ]
            for table in _SHOWN_TABLES
        }

    def _make_value(self, column, value):
        if isinstance(column.type, sa.DateTime):
            return value is not None
        end = next((end for end in _NAME_COLUMNS if column.name.endswith(end)), None)
        if end is None or value is None:
            return value
        if value not in self._names[end]:
            self.lost.add(f"a row of {column.table.name} refers to no {column.name}")
        return self._names[end].get(value)

    def picture(self):
        """Return all rows as sorted lines."""
        return tuple(
            sorted(
                f"{table}: {sorted(row.items())}"
                for table in self.rows
                for row in self.rows[table]
            )
        )

    def broken(self):
        """Yield the violated rules as sentences."""
        yield from sorted(self.lost)
        recorded = {row["uuid"] for row in self.rows["consumers"]}
        holding = {row["consumer_id"] for row in self.rows["allocations"]}
        # A fully drawn hold keeps its record.
        drawn_holds = {row["hold_uuid"] for row in self.rows["treeclaim_draws"]}
        for consumer in sorted(recorded - holding - drawn_holds):
            yield f"consumer {consumer} has a record but no allocations"
        for consumer in sorted(holding - recorded):
            yield f"consumer {consumer} has allocations but no record"
        stocks = set(map(_key_of, self.rows["inventories"]))
        for row in self.rows["allocations"]:
            if _key_of(row) not in stocks:
                yield f"consumer {row['consumer_id']} has an allocation of a missing inventory"


def _key_of(row):
    return row["resource_provider_id"], row["resource_class_id"]


class Follower:
    """A worker's Forest, loaded before the schedule."""

    def __init__(self, changes):
        self._forest = Forest()
        self._forest.apply(changes)
        self._cursor = changes.cursor

    def catch_up(self, store):
        """Catch up, and return the reader's contents.

        A reader that detects a wrong change returns empty contents. A worker would load everything, which would
        hide the change.
        """
        changes = store.load_changes(self._cursor)
        if changes is not None:
            if self._forest.is_consistent_with(changes):
                self._forest.apply(changes)
            else:
                self._forest = Forest()
            self._cursor = changes.cursor
        return self.describe()

    def describe(self):
        """Return the contents as texts, with names instead of ids, and without times."""
        records, catalogue = self._forest.records(), self._forest.catalogue
        uuids = {record.id: record.uuid for record in records}
        traits = {number: entry.name for number, entry in catalogue.trait_by_id.items()}
        classes = {number: entry.name for number, entry in catalogue.class_by_id.items()}
        providers = [
            str(
                (
                    record.uuid,
                    record.name,
                    record.generation,
                    uuids.get(record.parent_id, record.parent_id),
                    uuids.get(record.root_id, record.root_id),
                    sorted(
                        (str(classes.get(stock.class_id)), str(stock.inventory), stock.used)
                        for stock in record.inventories
                    ),
                    sorted(str(traits.get(trait_id)) for trait_id in record.links["traits"]),
                    record.links["aggregates"],
                    sorted(record.attributes.items()),
                )
            )
            for record in records
        ]
        return tuple(sorted(providers)), tuple(sorted([*traits.values(), *classes.values()]))

    def overbooked(self):
        """Return providers and ids of classes with more usage than capacity."""
        return frozenset(
            (record.uuid, stock.class_id)
            for record in self._forest.records()
            for stock in record.inventories
            if stock.used > stock.inventory.capacity
        )


@dataclass(frozen=True)
class Aftermath:
    """The contents of the database after a schedule.

    Attributes:
        picture: Everything that clients can read, as lines.
        reader_contents: Contents of a reader after a full load.
        overbooked: Providers and ids of classes with more usage than capacity.
        broken: Violated rules, as sentences.
    """

    picture: tuple[str, ...]
    reader_contents: tuple
    overbooked: frozenset
    broken: tuple[str, ...]

    def checked_by(self, store, followers):
        """Return this aftermath, broken if a reader of the feed differs."""
        if _STALE in self.broken or all(
            follower.catch_up(store) == self.reader_contents for follower in followers
        ):
            return self
        return replace(self, broken=(*self.broken, _STALE))


def aftermath(store, followers):
    """Read the database after a schedule.

    Args:
        store: Reads the database.
        followers: Readers of the feed, some of which polled last before the schedule.
    """
    fresh = Follower(store.load_changes(None))
    with store.engine.connect() as connection:
        contents = _Contents(connection)
    result = Aftermath(
        contents.picture(), fresh.describe(), fresh.overbooked(), tuple(contents.broken())
    )
    return result.checked_by(store, followers)
