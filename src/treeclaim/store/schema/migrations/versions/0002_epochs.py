# SPDX-License-Identifier: Apache-2.0
"""Epochs, and streams whose ids are random."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STREAMS = "treeclaim_streams"
_FEED = "treeclaim_feed"
_INDEX = "treeclaim_streams_epoch_idx"
_FIRST_EPOCH = """
INSERT INTO treeclaim_streams (id, position, pruned_to, used_at, epoch)
VALUES (:id, 0, 0, '9999-01-01 00:00:00', 0)
"""


def upgrade() -> None:
    """Widen the ids, add the columns, and make the first epoch.

    What an attempt before has made already is left: MariaDB commits each statement by itself.
    Rows of an earlier revision stay as they are, and a process of the release before goes on.
    """
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        # Integers of SQLite have 64 bits.
        _retype(sa.BigInteger())
    present = {column["name"] for column in sa.inspect(connection).get_columns(_STREAMS)}
    for name in ("epoch", "closed_in"):
        if name not in present:
            op.add_column(_STREAMS, sa.Column(name, sa.BigInteger))
    indexes = sa.inspect(connection).get_indexes(_STREAMS)
    if _INDEX not in {index["name"] for index in indexes}:
        op.create_index(_INDEX, _STREAMS, ["epoch"], unique=True)
    epochs = sa.text("SELECT count(*) FROM treeclaim_streams WHERE epoch IS NOT NULL")
    if not connection.execute(epochs).scalar():
        # As `new_id` of the feed draws it.
        first = (1 << 32) + secrets.randbelow((1 << 62) - (1 << 32))
        connection.execute(sa.text(_FIRST_EPOCH), {"id": first})


def downgrade() -> None:
    """Take all that back, with what is in the feed: its ids would not fit. Readers load anew."""
    op.execute(sa.delete(sa.table(_FEED)))
    op.execute(sa.delete(sa.table(_STREAMS)))
    op.drop_index(_INDEX, _STREAMS)
    with op.batch_alter_table(_STREAMS) as streams:
        streams.drop_column("epoch")
        streams.drop_column("closed_in")
    if op.get_bind().dialect.name != "sqlite":
        _retype(sa.Integer())
    if op.get_bind().dialect.name == "mysql":
        # It would count on from the greatest id that there was.
        op.execute(f"ALTER TABLE {_STREAMS} AUTO_INCREMENT = 1")


def _retype(kind: sa.types.TypeEngine[int]) -> None:
    connection = op.get_bind()
    for table, name, counted in ((_STREAMS, "id", True), (_FEED, "stream_id", False)):
        columns = sa.inspect(connection).get_columns(table)
        present = next(column["type"] for column in columns if column["name"] == name)
        if isinstance(present, sa.BigInteger) is not isinstance(kind, sa.BigInteger):
            # A process of the release before lets the database count.
            counts = counted if connection.dialect.name == "mysql" else None
            op.alter_column(table, name, type_=kind, existing_nullable=False, autoincrement=counts)
