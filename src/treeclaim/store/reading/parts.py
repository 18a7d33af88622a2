# SPDX-License-Identifier: Apache-2.0
"""How each part of providers that consists of links is loaded: of some providers, and of all.

Inventories have usage and numbers beside them: `loading.py`, `whole.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from treeclaim.model.parts import AGGREGATES, TRAITS, ProviderPart
from treeclaim.store.schema.mixed_collations import PlainText
from treeclaim.store.schema.tables import (
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
)

IDS = "ids"
"""The parameter of queries for what belongs to some providers: their ids."""

FIRST_KIND = 3
"""Of rows of links; the lower ones are those of `loading.py`."""

_NOTHING = sa.null()


class PartRow(NamedTuple):
    """A row of a query for all parts of some providers; what its numbers mean depends on its kind.

    Attributes:
        kind: One of those above, or another one's own.
        id: Of the provider, in the kinds above.
        n1, n2, n3, n4, n5, n6, n7: Whole numbers.
        ratio, uuid, name, updated_at, created_at: What they say.
    """

    kind: Any
    id: Any
    n1: Any = _NOTHING
    n2: Any = _NOTHING
    n3: Any = _NOTHING
    n4: Any = _NOTHING
    n5: Any = _NOTHING
    n6: Any = _NOTHING
    n7: Any = _NOTHING
    ratio: Any = _NOTHING
    uuid: Any = _NOTHING
    name: Any = _NOTHING
    updated_at: Any = _NOTHING
    created_at: Any = _NOTHING

    @classmethod
    def query(cls, kind: int, *numbers: Any, **others: Any) -> sa.Select[Any]:
        """Return a query for rows of a kind.

        Args:
            kind: Not one of those above, for rows beside `PARTS`.
            *numbers: The columns of `id` and of the whole numbers.
            **others: Other columns by their names.
        """
        columns = cls(sa.literal_column(str(kind)), *numbers, **others)._asdict()
        return sa.select(*(column.label(name) for name, column in columns.items()))


def of_some(statement: sa.Select[Any], column: sa.Column[Any]) -> sa.Select[Any]:
    """Return a query for what belongs to the providers of the ids `IDS`."""
    return statement.where(column.in_(sa.bindparam(IDS, expanding=True)))


@dataclass(frozen=True, slots=True)
class LoadedLinks:
    """How a part is loaded.

    Attributes:
        part: Which.
        kind: Of its rows among those of all parts.
        some: Query for rows of that kind, of the providers of the ids `IDS`.
        column: What of such a row says what the provider has.
        links: Query for `provider_id` and `other` of all providers, as `Links` has them.
        names: Query for what numbers in `other` stand for; None if for themselves.
    """

    part: ProviderPart[Any]
    kind: int
    some: sa.Select[Any]
    column: Callable[[Any], Any]
    links: sa.Select[Any]
    names: sa.Select[Any] | None = None


def _links(table: sa.Table, other: str) -> sa.Select[Any]:
    return sa.select(
        table.c.resource_provider_id.label("provider_id"), table.c[other].label("other")
    )


LINKED: Sequence[LoadedLinks] = (
    LoadedLinks(
        TRAITS,
        FIRST_KIND,
        of_some(
            PartRow.query(
                FIRST_KIND,
                resource_provider_traits.c.resource_provider_id,
                resource_provider_traits.c.trait_id,
            ),
            resource_provider_traits.c.resource_provider_id,
        ),
        attrgetter("n1"),
        _links(resource_provider_traits, "trait_id"),
    ),
    LoadedLinks(
        AGGREGATES,
        FIRST_KIND + 1,
        of_some(
            PartRow.query(
                FIRST_KIND + 1,
                resource_provider_aggregates.c.resource_provider_id,
                uuid=PlainText(placement_aggregates.c.uuid),
            ).join(
                placement_aggregates,
                placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id,
            ),
            resource_provider_aggregates.c.resource_provider_id,
        ),
        attrgetter("uuid"),
        _links(resource_provider_aggregates, "aggregate_id"),
        sa.select(placement_aggregates.c.id, placement_aggregates.c.uuid).where(
            placement_aggregates.c.uuid.is_not(None)
        ),
    ),
)
"""All parts but the inventories."""
