# SPDX-License-Identifier: Apache-2.0
"""The tables of the Placement service (contract page 85), and Treeclaim's own tables.

The names of own tables begin with `treeclaim_`.
"""

import secrets

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    Unicode,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

PLACEMENT_REVISION = "a082b8bb98d0"
"""The only revision of the Placement schema that this program understands."""

OWN_REVISION = "0002"
"""The only revision of Treeclaim's own tables that this program understands."""

placement = MetaData()
own_tables = MetaData()


def _table(name: str, metadata: MetaData, *parts: SchemaItem) -> Table:
    return Table(name, metadata, *parts, mysql_engine="InnoDB", mysql_charset="utf8mb3")


def _placement_table(name: str, *parts: SchemaItem) -> Table:
    times = Column("created_at", DateTime), Column("updated_at", DateTime)
    return _table(name, placement, *times, *parts)


def _name_table(name: str, column: str, kind: TypeEngine[str]) -> Table:
    """Return a table of Placement that maps names to ids."""
    return _placement_table(
        name,
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column(column, kind, nullable=False),
        UniqueConstraint(column, name=f"uniq_{name}0{column}"),
    )


def _own_table(name: str, *parts: SchemaItem) -> Table:
    return _table(name, own_tables, *parts)


alembic_version = _table(
    "alembic_version",
    placement,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

resource_classes = _placement_table(
    "resource_classes",
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", String(255), nullable=False),
    UniqueConstraint("name", name="uniq_resource_classes0name"),
)

traits = _name_table("traits", "name", Unicode(255))

resource_providers = _placement_table(
    "resource_providers",
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", Unicode(200)),
    Column("generation", Integer),
    Column("root_provider_id", Integer, ForeignKey("resource_providers.id")),
    Column("parent_provider_id", Integer, ForeignKey("resource_providers.id")),
    UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
    UniqueConstraint("name", name="uniq_resource_providers0name"),
    Index("resource_providers_root_provider_id_idx", "root_provider_id"),
    Index("resource_providers_parent_provider_id_idx", "parent_provider_id"),
)

inventories = _placement_table(
    "inventories",
    Column("id", Integer, primary_key=True),
    Column("resource_provider_id", Integer, nullable=False),
    Column("resource_class_id", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("reserved", Integer, nullable=False),
    Column("min_unit", Integer, nullable=False),
    Column("max_unit", Integer, nullable=False),
    Column("step_size", Integer, nullable=False),
    Column("allocation_ratio", Float, nullable=False),
    UniqueConstraint(
        "resource_provider_id",
        "resource_class_id",
        name="uniq_inventories0resource_provider_resource_class",
    ),
    Index("inventories_resource_class_id_idx", "resource_class_id"),
)

allocations = _placement_table(
    "allocations",
    Column("id", Integer, primary_key=True),
    Column("resource_provider_id", Integer, nullable=False),
    Column("consumer_id", String(36), nullable=False),
    Column("resource_class_id", Integer, nullable=False),
    Column("used", Integer, nullable=False),
    Index(
        "allocations_resource_provider_class_used_idx",
        "resource_provider_id",
        "resource_class_id",
        "used",
    ),
    Index("allocations_resource_class_id_idx", "resource_class_id"),
    Index("allocations_consumer_id_idx", "consumer_id"),
)

placement_aggregates = _placement_table(
    "placement_aggregates",
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("uuid", String(36)),
    UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
)

resource_provider_aggregates = _placement_table(
    "resource_provider_aggregates",
    Column("resource_provider_id", Integer, primary_key=True, autoincrement=False),
    Column("aggregate_id", Integer, primary_key=True, autoincrement=False),
    Index("resource_provider_aggregates_aggregate_id_idx", "aggregate_id"),
)

resource_provider_traits = _placement_table(
    "resource_provider_traits",
    Column("trait_id", Integer, ForeignKey("traits.id"), primary_key=True, autoincrement=False),
    Column(
        "resource_provider_id",
        Integer,
        ForeignKey("resource_providers.id"),
        primary_key=True,
        autoincrement=False,
    ),
    Index(
        "resource_provider_traits_resource_provider_trait_idx", "resource_provider_id", "trait_id"
    ),
)

projects = _name_table("projects", "external_id", String(255))

users = _name_table("users", "external_id", String(255))

consumer_types = _name_table("consumer_types", "name", Unicode(255))

consumers = _placement_table(
    "consumers",
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("uuid", String(36), nullable=False),
    Column("project_id", Integer, nullable=False),
    Column("user_id", Integer, nullable=False),
    Column("generation", Integer, nullable=False, server_default=text("0")),
    Column(
        "consumer_type_id",
        Integer,
        ForeignKey("consumer_types.id", name="consumers_consumer_type_id_fkey"),
    ),
    UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    Index("consumers_project_id_uuid_idx", "project_id", "uuid"),
    Index("consumers_project_id_user_id_uuid_idx", "project_id", "user_id", "uuid"),
    Index("consumers_consumer_type_id_idx", "consumer_type_id"),
)

own_version = _own_table(
    "treeclaim_alembic_version",
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="treeclaim_alembic_version_pkc"),
)
"""The revision of Treeclaim's own tables; its row is written after the last table."""

SHARDS = 8
"""Shards of the change feed. With more shards, more commits overlap, and each poll takes longer."""

feed_shards = Table(
    "treeclaim_feed_shards",
    own_tables,
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("previous", BigInteger, nullable=False),
    Column("pruned_to", BigInteger, nullable=False),
    Column("writer", String(36), nullable=False),
    Column("fence", BigInteger, nullable=False),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb3",
    # Every write updates a row, so its page needs room for further versions.
    postgresql_with={"fillfactor": 10},
)
"""The shards of the change feed, which always exist; see `treeclaim.store.feed.shards`.

`position` numbers the commits of a shard. `token` is the random token of the last commit, `previous` that of the
commit before it. Feed rows up to `pruned_to` may have been deleted. `writer` is the Galera node that writes; its
takeover drew the `fence`.
"""


def draw_token() -> int:
    """Return a random number of 63 bits."""
    # From the operating system, because two processes after a fork must not draw the same numbers.
    return secrets.randbits(63)


def make_shard(number: int, position: int = 0) -> dict[str, int | str]:
    """Return the row of a new shard without a readable past and a writer."""
    return {
        "shard": number,
        "position": position,
        "token": draw_token(),
        "previous": 0,
        "pruned_to": position,
        "writer": "",
        "fence": draw_token(),
    }


LONGEST_AMOUNTS = 255
"""Characters of `amounts` in the feed, enough for a claim of some dozen classes on one provider."""

feed = _own_table(
    "treeclaim_feed",
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(16), primary_key=True),
    Column("object_id", Integer, primary_key=True, autoincrement=False),
    Column("previous", BigInteger, nullable=False),
    Column("created_at", DateTime, nullable=False),
    Column("format", SmallInteger, nullable=False),
    Column("parts", SmallInteger),
    Column("uuid", String(36)),
    Column("tree", String(36)),
    Column("amounts", String(LONGEST_AMOUNTS)),
)
"""The providers that each transaction changed; see `treeclaim.store.feed`.

`previous` is the token of the preceding commit in the shard. `format` is the version of the row's meaning. In format
1, `parts` are the bits of `model.parts.Part`, `uuid` is the UUID of a deleted provider, and `tree` is the UUID of
the former root of a deleted or moved provider. `amounts` has the changes of usage and generation by claims; if it is
NULL, readers load the provider.
"""

holds = _own_table(
    "treeclaim_holds",
    Column("uuid", String(36), primary_key=True),
    Column("ends_at", DateTime),
    Column("returns", Boolean, nullable=False),
    Column("note", Text),
    Index("treeclaim_holds_ends_at_idx", "ends_at"),
)
"""Terms of holds (contract page 100), by the uuids of their consumers.

A consumer is a hold if it has a row here and the type `TREECLAIM_HOLD`. `ends_at` is naive UTC, in whole seconds.
`note`, like other texts of clients in own tables, is JSON in ASCII, which every character set can store.
"""

hold_projects = _own_table(
    "treeclaim_hold_projects",
    Column("hold_uuid", String(36), primary_key=True),
    Column("number", SmallInteger, primary_key=True, autoincrement=False),
    Column("project", String(255), nullable=False),
    Index("treeclaim_hold_projects_project_idx", "project"),
)
"""Further projects that may draw from a hold, numbered in the order of the client."""

draws = _own_table(
    "treeclaim_draws",
    Column("consumer_uuid", String(36), primary_key=True),
    Column("provider_id", Integer, primary_key=True, autoincrement=False),
    Column("class_id", Integer, primary_key=True, autoincrement=False),
    Column("hold_uuid", String(36), primary_key=True),
    Column("amount", Integer, nullable=False),
    Index("treeclaim_draws_hold_uuid_idx", "hold_uuid"),
    Index("treeclaim_draws_provider_id_idx", "provider_id"),
)
"""Amounts that consumers have drawn from holds that return."""

requests = _own_table(
    "treeclaim_requests",
    Column("consumer_uuid", String(36), primary_key=True),
    Column("request", Text, nullable=False),
    Column("gone_at", DateTime),
    Index("treeclaim_requests_gone_at_idx", "gone_at"),
)
"""Requests by which consumers were placed: JSON lists of queries, in ASCII. At `gone_at`, naive UTC, the consumer was
first found without a record."""

MOST_MIXES = 64
"""Largest number of mixes (contract page 101, section 2)."""

_MYSQL = ("mysql", "mariadb")

mixes = _own_table(
    "treeclaim_mixes",
    Column(
        "name",
        String(64).with_variant(mysql.VARCHAR(64, collation="utf8mb3_bin"), *_MYSQL),
        primary_key=True,
    ),
    Column("slot", SmallInteger, nullable=False),
    Column("body", Text().with_variant(mysql.MEDIUMTEXT(), *_MYSQL), nullable=False),
    Index("treeclaim_mixes_slot_idx", "slot", unique=True),
)
"""Mixes of requests. `body` is the client's document as JSON in ASCII. The unique `slot`, 0 to `MOST_MIXES` - 1, bounds
their number for concurrent writes. Names are case-sensitive, unlike MariaDB's default collations."""

aggregate_names = _own_table(
    "treeclaim_aggregate_names",
    Column("uuid", String(36), primary_key=True),
    Column("name", Text, nullable=False),
)
"""Display names of aggregates: JSON strings in ASCII. An aggregate without providers may have a name."""

attributes = _own_table(
    "treeclaim_attributes",
    Column("resource_provider_id", Integer, primary_key=True, autoincrement=False),
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)
"""Attributes of providers (contract page 102, section 1): JSON texts in ASCII, by name."""

consumption = _own_table(
    "treeclaim_consumption",
    Column("resource_provider_id", Integer, primary_key=True, autoincrement=False),
    Column("resource_class_id", Integer, primary_key=True, autoincrement=False),
    Column("consumed_provider_id", Integer, primary_key=True, autoincrement=False),
    Column("consumed_class_id", Integer, primary_key=True, autoincrement=False),
    Column("amount", Integer, nullable=False),
    Index("treeclaim_consumption_consumed_idx", "consumed_provider_id", "consumed_class_id"),
)
"""Units of a second inventory that each unit of an inventory consumes (contract page 102, section 2)."""

conditions = _own_table(
    "treeclaim_conditions",
    Column("resource_provider_id", Integer, primary_key=True, autoincrement=False),
    Column("name", String(64), primary_key=True),
    Column("effect", SmallInteger, nullable=False),
    Column("ends_at", DateTime),
    Column("on_use", Boolean, nullable=False),
    Column("began", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Index("treeclaim_conditions_ends_at_idx", "ends_at"),
)
"""Conditions of providers (contract page 102, section 3), by key. `ends_at` is naive UTC, in whole seconds; `reason` is a
JSON string in ASCII."""

ROWS_OF_PROVIDERS = (
    inventories,
    allocations,
    resource_provider_traits,
    resource_provider_aggregates,
    attributes,
    consumption,
    conditions,
)
"""Tables with a `resource_provider_id`. Deleting a provider deletes its rows in all of them but allocations."""
