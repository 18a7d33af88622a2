# SPDX-License-Identifier: Apache-2.0
"""Holds, what is drawn from them, and the requests that consumers were placed by."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

usable_from = "0001"
"""The oldest revision whose programs can use the tables as they are at this one."""

_OPTIONS: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb3"}


def _tables() -> tuple[sa.Table, ...]:
    tables = sa.MetaData()
    return (
        sa.Table(
            "treeclaim_holds",
            tables,
            sa.Column("uuid", sa.String(36), primary_key=True),
            sa.Column("ends_at", sa.DateTime),
            sa.Column("returns", sa.Boolean, nullable=False),
            sa.Column("note", sa.Text),
            sa.Index("treeclaim_holds_ends_at_idx", "ends_at"),
            **_OPTIONS,
        ),
        sa.Table(
            "treeclaim_hold_projects",
            tables,
            sa.Column("hold_uuid", sa.String(36), primary_key=True),
            sa.Column("number", sa.SmallInteger, primary_key=True, autoincrement=False),
            sa.Column("project", sa.String(255), nullable=False),
            sa.Index("treeclaim_hold_projects_project_idx", "project"),
            **_OPTIONS,
        ),
        sa.Table(
            "treeclaim_draws",
            tables,
            sa.Column("consumer_uuid", sa.String(36), primary_key=True),
            sa.Column("provider_id", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("class_id", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("hold_uuid", sa.String(36), primary_key=True),
            sa.Column("amount", sa.Integer, nullable=False),
            sa.Index("treeclaim_draws_hold_uuid_idx", "hold_uuid"),
            sa.Index("treeclaim_draws_provider_id_idx", "provider_id"),
            **_OPTIONS,
        ),
        sa.Table(
            "treeclaim_requests",
            tables,
            sa.Column("consumer_uuid", sa.String(36), primary_key=True),
            sa.Column("request", sa.Text, nullable=False),
            sa.Column("gone_at", sa.DateTime),
            sa.Index("treeclaim_requests_gone_at_idx", "gone_at"),
            **_OPTIONS,
        ),
    )


def upgrade() -> None:
    """Make the tables; keep those that an earlier attempt has made.

    A process of the release before goes on: for it holds are consumers like others. What it gives
    up of what was drawn is free, and counts as forgotten.
    """
    # MariaDB commits each statement by itself: an attempt that was cut off goes on from here.
    for table in _tables():
        table.create(op.get_bind(), checkfirst=True)
        for index in table.indexes:
            index.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    """Drop the tables: holds are consumers like others then, and nothing comes back to them."""
    for table in _tables():
        table.drop(op.get_bind(), checkfirst=True)
