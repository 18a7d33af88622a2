# SPDX-License-Identifier: Apache-2.0
"""Columns for watchers: the changed parts of a provider, and its identity."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_FEED = "treeclaim_feed"


def _columns() -> tuple[sa.Column[int] | sa.Column[str], ...]:
    return (
        sa.Column("format", sa.SmallInteger),
        sa.Column("parts", sa.SmallInteger),
        sa.Column("uuid", sa.String(36)),
        sa.Column("tree", sa.String(36)),
    )


def upgrade() -> None:
    """Add the columns; keep those that an earlier attempt has added.

    A process of the release before goes on: it writes rows without them, and reads no more than it
    knows.
    """
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(_FEED)}
    for column in _columns():
        if column.name not in present:
            op.add_column(_FEED, column)


def downgrade() -> None:
    """Drop the columns."""
    with op.batch_alter_table(_FEED) as feed:
        for column in _columns():
            feed.drop_column(column.name)
