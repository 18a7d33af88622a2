# SPDX-License-Identifier: Apache-2.0
"""Loaders of each part of providers but the inventories: of some providers, and of all.

Inventories have usage and numbers beside them: `some_providers.py`, `whole.py`. All attributes are loaded in
`attributes.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from treeclaim.model.parts import AGGREGATES, CONDITIONS, TRAITS, ProviderPart
from treeclaim.model.whole import Links
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.providers.conditions import ConditionRow, all_conditions, condition_of
from treeclaim.store.schema.mixed_collations import PlainText
from treeclaim.store.schema.tables import (
    attributes,
    conditions,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
)

IDS = "ids"
"""The parameter of queries for what belongs to some providers: their ids."""

FIRST_KIND = 3
"""The first kind of rows of links; the lower ones belong to `some_providers.py`."""

_NOTHING = sa.null()


class PartRow(NamedTuple):
    """A row of a query for all parts of some providers; what its numbers mean depends on its kind.

    Attributes:
        kind: One of those above, or another one's own.
        id: Id of the provider, in the kinds above.
        n1, n2, n3, n4, n5, n6, n7: Whole numbers.
        ratio, uuid, name, updated_at, created_at: What they say; an attribute's value is in `uuid`.
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
    """The loader of a part.

    Attributes:
        part: Which.
        kind: The kind of its rows among those of all parts.
        some: Query for rows of that kind, of the providers of the ids `IDS`.
        column: The column of such a row that says what the provider has.
        links: Query for `provider_id` and `other` of all providers, as `Links` has them.
        names: Query for what numbers in `other` stand for; None if for themselves.
        whole: Loads the links of all providers in its own way; `links` and `names` are not asked then.
    """

    part: ProviderPart[Any]
    kind: int
    some: sa.Select[Any]
    column: Callable[[Any], Any]
    links: sa.Select[Any] | None = None
    names: sa.Select[Any] | None = None
    whole: Callable[[ReadTransaction], Links] | None = None


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
    LoadedLinks(
        CONDITIONS,
        FIRST_KIND + 2,
        of_some(
            PartRow.query(
                FIRST_KIND + 2,
                conditions.c.resource_provider_id,
                conditions.c.effect,
                sa.case((conditions.c.on_use, 1), else_=0),
                sa.case((conditions.c.began, 1), else_=0),
                # No column more for all other rows: its key is where they have a uuid.
                uuid=PlainText(conditions.c.name),
                name=PlainText(conditions.c.reason),
                updated_at=conditions.c.ends_at,
            ),
            conditions.c.resource_provider_id,
        ),
        lambda row: condition_of(
            ConditionRow(row.uuid, row.n1, row.updated_at, row.n2, row.n3, row.name)
        ),
        whole=all_conditions,
    ),
)
"""All parts that consist of links."""

ATTRIBUTES_KIND = FIRST_KIND + len(LINKED)
SOME_ATTRIBUTES = of_some(
    PartRow.query(
        ATTRIBUTES_KIND,
        attributes.c.resource_provider_id,
        uuid=PlainText(attributes.c.value),
        name=PlainText(attributes.c.name),
    ),
    attributes.c.resource_provider_id,
)
"""Query for names and values of the providers of the ids `IDS`."""
"""All parts but the inventories, and the conditions."""
