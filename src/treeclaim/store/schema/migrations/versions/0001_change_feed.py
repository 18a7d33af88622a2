# SPDX-License-Identifier: Apache-2.0
"""Streams and rows of the change feed."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_OPTIONS: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb3"}


def upgrade() -> None:
    """Make the tables of the change feed; keep those that an earlier attempt has made."""
    # MariaDB commits each statement by itself: an attempt that was cut off goes on from here.
    present = sa.inspect(op.get_bind()).get_table_names()
    if "treeclaim_streams" not in present:
        op.create_table(
            "treeclaim_streams",
            sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
            sa.Column("position", sa.BigInteger, nullable=False),
            sa.Column("pruned_to", sa.BigInteger, nullable=False),
            sa.Column("used_at", sa.DateTime, nullable=False),
            **_OPTIONS,
        )
    if "treeclaim_feed" not in present:
        op.create_table(
            "treeclaim_feed",
            sa.Column("stream_id", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("kind", sa.String(16), primary_key=True),
            sa.Column("object_id", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("created_at", sa.DateTime, nullable=False),
            **_OPTIONS,
        )
    if not sa.inspect(op.get_bind()).get_indexes("treeclaim_feed"):
        op.create_index("treeclaim_feed_created_at_idx", "treeclaim_feed", ["created_at"])


def downgrade() -> None:
    """Drop the tables of the change feed."""
    op.drop_table("treeclaim_feed")
    op.drop_table("treeclaim_streams")
