# SPDX-License-Identifier: Apache-2.0
"""Attributes, consumption and conditions of providers."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

usable_from = "0001"
"""The oldest revision whose programs can use the tables as they are at this one."""

_OPTIONS: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb3"}


def _numbers(*names: str) -> tuple[sa.Column[int], ...]:
    return tuple(
        sa.Column(name, sa.Integer, primary_key=True, autoincrement=False) for name in names
    )


def _tables() -> tuple[sa.Table, ...]:
    tables = sa.MetaData()
    return (
        sa.Table(
            "treeclaim_attributes",
            tables,
            *_numbers("resource_provider_id"),
            sa.Column("name", sa.String(64), primary_key=True),
            sa.Column("value", sa.Text, nullable=False),
            **_OPTIONS,
        ),
        sa.Table(
            "treeclaim_consumption",
            tables,
            *_numbers(
                "resource_provider_id",
                "resource_class_id",
                "consumed_provider_id",
                "consumed_class_id",
            ),
            sa.Column("amount", sa.Integer, nullable=False),
            sa.Index(
                "treeclaim_consumption_consumed_idx", "consumed_provider_id", "consumed_class_id"
            ),
            **_OPTIONS,
        ),
        sa.Table(
            "treeclaim_conditions",
            tables,
            *_numbers("resource_provider_id"),
            sa.Column("name", sa.String(64), primary_key=True),
            sa.Column("effect", sa.SmallInteger, nullable=False),
            sa.Column("ends_at", sa.DateTime),
            sa.Column("on_use", sa.Boolean, nullable=False),
            sa.Column("began", sa.Boolean, nullable=False),
            sa.Column("reason", sa.Text, nullable=False),
            sa.Index("treeclaim_conditions_ends_at_idx", "ends_at"),
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
