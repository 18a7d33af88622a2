# SPDX-License-Identifier: Apache-2.0
"""What of a provider changed, and who it was: for those who watch."""

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
    """Add the columns; what an attempt before has made already is left.

    A process of the release before goes on: it writes rows without them, and reads no more than it
    knows.
    """
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(_FEED)}
    for column in _columns():
        if column.name not in present:
            op.add_column(_FEED, column)


def downgrade() -> None:
    """Take the columns back."""
    with op.batch_alter_table(_FEED) as feed:
        for column in _columns():
            feed.drop_column(column.name)
