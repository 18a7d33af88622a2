# SPDX-License-Identifier: Apache-2.0
"""By how much a claim changed usage and generation of a provider, so that readers need not look."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

usable_from = "0001"
"""The oldest revision whose programs can use the tables as they are at this one."""

_FEED = "treeclaim_feed"
_AMOUNTS = "amounts"


def upgrade() -> None:
    """Add the column; what an attempt before has made already is left.

    A process of the release before goes on: it writes rows without it, and loads the providers that
    rows with it name.
    """
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(_FEED)}
    if _AMOUNTS not in present:
        op.add_column(_FEED, sa.Column(_AMOUNTS, sa.String(255)))


def downgrade() -> None:
    """Take the column back."""
    with op.batch_alter_table(_FEED) as feed:
        feed.drop_column(_AMOUNTS)
