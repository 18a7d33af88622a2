# SPDX-License-Identifier: Apache-2.0
"""Runs the migrations on the connection that `treeclaim.store.schema.revisions` gives."""

from alembic import context

from treeclaim.store.schema.later_releases import OWN_VERSION_TABLE
from treeclaim.store.schema.tables import own_tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=own_tables,
    version_table=OWN_VERSION_TABLE,
)
context.run_migrations()
