# SPDX-License-Identifier: Apache-2.0
"""Mixes of requests, and names of aggregates."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

usable_from = "0001"
"""The oldest revision whose programs can use the tables as they are at this one."""

_OPTIONS: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb3"}
_MYSQL = ("mysql", "mariadb")


def _tables() -> tuple[sa.Table, ...]:
    tables = sa.MetaData()
    exact = mysql.VARCHAR(64, collation="utf8mb3_bin")
    return (
        sa.Table(
            "treeclaim_mixes",
            tables,
            sa.Column("name", sa.String(64).with_variant(exact, *_MYSQL), primary_key=True),
            sa.Column("slot", sa.SmallInteger, nullable=False),
            sa.Column("body", sa.Text().with_variant(mysql.MEDIUMTEXT(), *_MYSQL), nullable=False),
            sa.Index("treeclaim_mixes_slot_idx", "slot", unique=True),
            **_OPTIONS,
        ),
        sa.Table(
            "treeclaim_aggregate_names",
            tables,
            sa.Column("uuid", sa.String(36), primary_key=True),
            sa.Column("name", sa.Text, nullable=False),
            **_OPTIONS,
        ),
    )


def upgrade() -> None:
    """Make the tables; keep those that an earlier attempt has made.

    A process of the release before goes on: it knows nothing of them.
    """
    # MariaDB commits each statement by itself: an attempt that was cut off goes on from here.
    for table in _tables():
        table.create(op.get_bind(), checkfirst=True)
        for index in table.indexes:
            index.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    """Drop the tables."""
    for table in _tables():
        table.drop(op.get_bind(), checkfirst=True)
