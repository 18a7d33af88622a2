# SPDX-License-Identifier: Apache-2.0
"""Identities of streams that never come again, and epochs."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STREAMS = "treeclaim_streams"
_INDEX = "treeclaim_streams_epoch_idx"
_COLUMNS = ("identity", "epoch", "closed_in")
_FIRST_EPOCH = """
INSERT INTO treeclaim_streams (identity, position, pruned_to, used_at, epoch)
VALUES (:identity, 0, 0, '9999-01-01 00:00:00', 0)
"""


def upgrade() -> None:
    """Add the columns, and make the first epoch.

    What an attempt before has made already is left: MariaDB commits each statement by itself.
    Rows of an earlier revision stay as they are, and a process of the release before goes on.
    """
    connection = op.get_bind()
    present = {column["name"] for column in sa.inspect(connection).get_columns(_STREAMS)}
    for name in _COLUMNS:
        if name not in present:
            op.add_column(_STREAMS, sa.Column(name, sa.BigInteger))
    indexes = sa.inspect(connection).get_indexes(_STREAMS)
    if _INDEX not in {index["name"] for index in indexes}:
        op.create_index(_INDEX, _STREAMS, ["epoch"], unique=True)
    epochs = sa.text("SELECT count(*) FROM treeclaim_streams WHERE epoch IS NOT NULL")
    if not connection.execute(epochs).scalar():
        # As `new_identity` of the feed draws it.
        first = (1 << 32) + secrets.randbelow((1 << 63) - (1 << 32))
        connection.execute(sa.text(_FIRST_EPOCH), {"identity": first})


def downgrade() -> None:
    """Revert this, and empty the feed: processes load everything when they start."""
    op.execute(sa.delete(sa.table("treeclaim_feed")))
    op.execute(sa.delete(sa.table(_STREAMS)))
    op.drop_index(_INDEX, _STREAMS)
    with op.batch_alter_table(_STREAMS) as streams:
        for name in _COLUMNS:
            streams.drop_column(name)
