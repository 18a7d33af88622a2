# SPDX-License-Identifier: Apache-2.0
"""Checks that a provider exists."""

import sqlalchemy as sa

from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.tables import resource_providers

_UUID = sa.select(resource_providers.c.uuid).where(
    resource_providers.c.uuid == sa.bindparam("uuid")
)


def require_exists(transaction: ReadTransaction, uuid: str) -> None:
    """Check that there is a provider with exactly this uuid.

    Raises:
        ProviderNotFoundError: if there is none.
    """
    # Some collations match other spellings too.
    if transaction.scalar(_UUID, uuid=uuid) != uuid:
        raise ProviderNotFoundError(uuid)
