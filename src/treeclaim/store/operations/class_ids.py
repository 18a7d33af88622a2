# SPDX-License-Identifier: Apache-2.0
"""Names of resource classes to ids and back."""

from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from treeclaim.model.errors import ResourceClassNotFoundError
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.tables import resource_classes

_NAMED = sa.select(resource_classes.c.id, resource_classes.c.name).where(
    resource_classes.c.name.in_(sa.bindparam("names", expanding=True))
)
_WITH_ID = sa.select(resource_classes.c.id, resource_classes.c.name).where(
    resource_classes.c.id.in_(sa.bindparam("ids", expanding=True))
)


def ids_of(transaction: ReadTransaction, names: Iterable[str]) -> Mapping[str, int]:
    """Return the ids of resource classes by name.

    Raises:
        ResourceClassNotFoundError: for the first name that is none's.
    """
    wanted = list(dict.fromkeys(names))
    found = {row.name: row.id for row in transaction.rows(_NAMED, names=wanted)} if wanted else {}
    for name in wanted:
        if name not in found:
            raise ResourceClassNotFoundError(name)
    return found


def names_of(transaction: ReadTransaction, ids: Iterable[int]) -> Mapping[int, str]:
    """Return the names of resource classes by id."""
    return {row.id: row.name for row in transaction.rows(_WITH_ID, ids=sorted(set(ids)))}
