# SPDX-License-Identifier: Apache-2.0
"""Consumers for plans: their allocations, owners, requests and draws (page 101).

All parts are read in one snapshot, as columns, some thousand rows at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from treeclaim.model.extension.planning import (
    AllocationColumns,
    ConsumersRead,
    HoldsRead,
    OwnerColumns,
    RequestColumns,
)
from treeclaim.store.database.compiled import bind_list
from treeclaim.store.database.transactions import ReadTransaction, chunks
from treeclaim.store.reading.holds import load_draws, load_hold_uuids
from treeclaim.store.reading.providers.json_columns import as_columns, columns
from treeclaim.store.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    requests,
)

_AT_ONCE = 20_000
"""Rows in one statement: a few megabytes, so that round trips are negligible."""

_FIRST = -(2**31)
"""Less than the id of any row."""

_ALLOCATIONS = sa.select(
    allocations.c.id.label("key"),
    allocations.c.consumer_id.label("consumer"),
    allocations.c.resource_provider_id.label("provider_id"),
    allocations.c.resource_class_id.label("class_id"),
    allocations.c.used,
)
_OWNERS = (
    sa.select(
        consumers.c.id.label("key"),
        consumers.c.uuid,
        projects.c.external_id.label("project"),
        consumer_types.c.name.label("type"),
        sa.func.coalesce(consumers.c.generation, 0).label("generation"),
    )
    .select_from(consumers)
    .join(projects, projects.c.id == consumers.c.project_id)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
)
_REQUESTS = sa.select(
    requests.c.consumer_uuid.label("key"),
    requests.c.consumer_uuid.label("consumer"),
    requests.c.request,
)


class _PagedQuery:
    """The query of a part, for all consumers or for named ones; `kind` has an attribute for each column but the key."""

    def __init__(
        self,
        kind: Callable[..., ConsumersRead],
        statement: sa.Select[Any],
        key: sa.Column[Any],
        uuid: sa.Column[str],
        first: Any,
    ) -> None:
        page = statement.where(key > sa.bindparam("after")).order_by(key)
        page = page.limit(sa.bindparam("most"))
        self._page = as_columns(page)
        self._named = as_columns(statement.where(uuid.in_(bind_list("uuids"))).order_by(key))
        self._kind = kind
        self._first = first

    def load(
        self, transaction: ReadTransaction, uuids: Sequence[str] | None
    ) -> Iterator[ConsumersRead]:
        """Yield the part of named consumers, or of all (None)."""
        for chunk in chunks(uuids or ()):
            page = columns(transaction, self._named, uuids=list(chunk))
            del page["key"]
            yield self._kind(**page)
        keys = [self._first] if uuids is None else []
        while keys:
            page = columns(transaction, self._page, after=max(keys), most=_AT_ONCE)
            if keys := page.pop("key"):
                yield self._kind(**page)


_PARTS = (
    _PagedQuery(
        AllocationColumns, _ALLOCATIONS, allocations.c.id, allocations.c.consumer_id, _FIRST
    ),
    _PagedQuery(OwnerColumns, _OWNERS, consumers.c.id, consumers.c.uuid, _FIRST),
    _PagedQuery(RequestColumns, _REQUESTS, requests.c.consumer_uuid, requests.c.consumer_uuid, ""),
)


def load_planned_consumers(
    transaction: ReadTransaction, uuids: Sequence[str] | None = None
) -> Iterator[ConsumersRead]:
    """Yield the records of named consumers, or of all (None), part after part, in one snapshot."""
    for part in _PARTS:
        yield from part.load(transaction, uuids)
    yield HoldsRead(load_hold_uuids(transaction), load_draws(transaction, uuids))
