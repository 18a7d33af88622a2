# SPDX-License-Identifier: Apache-2.0
"""Consumers for plans: their allocations, owners, requests and draws (page 101).

All parts are read in one snapshot, as columns, some thousand rows at a time.
"""

from collections.abc import Iterator, Sequence
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
    requests.c.consumer_uuid.label("key"), requests.c.consumer_uuid, requests.c.request
)


class _PagedQuery:
    """The query of a part, for all consumers or for named ones."""

    def __init__(
        self, statement: sa.Select[Any], key: sa.Column[Any], uuid: sa.Column[str], first: Any
    ) -> None:
        page = statement.where(key > sa.bindparam("after")).order_by(key)
        page = page.limit(sa.bindparam("most"))
        self._page = as_columns(page)
        self._named = as_columns(statement.where(uuid.in_(bind_list("uuids"))).order_by(key))
        self._first = first

    def pages(self, transaction: ReadTransaction, uuids: Sequence[str] | None) -> Iterator[Any]:
        """Yield columns of named consumers, or of all (None)."""
        if uuids is not None:
            for chunk in chunks(uuids):
                yield columns(transaction, self._named, uuids=list(chunk))
            return
        after = self._first
        while True:
            page_columns = columns(transaction, self._page, after=after, most=_AT_ONCE)
            keys = page_columns.key
            if not keys:
                return
            yield page_columns
            after = max(keys)


_READ_ALLOCATIONS = _PagedQuery(_ALLOCATIONS, allocations.c.id, allocations.c.consumer_id, _FIRST)
_READ_OWNERS = _PagedQuery(_OWNERS, consumers.c.id, consumers.c.uuid, _FIRST)
_READ_REQUESTS = _PagedQuery(_REQUESTS, requests.c.consumer_uuid, requests.c.consumer_uuid, "")


def load_planned_consumers(
    transaction: ReadTransaction, uuids: Sequence[str] | None = None
) -> Iterator[ConsumersRead]:
    """Yield the records of named consumers, or of all (None), part after part, in one snapshot."""
    for page_columns in _READ_ALLOCATIONS.pages(transaction, uuids):
        yield AllocationColumns(
            page_columns.consumer,
            page_columns.provider_id,
            page_columns.class_id,
            page_columns.used,
        )
    for page_columns in _READ_OWNERS.pages(transaction, uuids):
        yield OwnerColumns(
            page_columns.uuid, page_columns.project, page_columns.type, page_columns.generation
        )
    for page_columns in _READ_REQUESTS.pages(transaction, uuids):
        yield RequestColumns(page_columns.consumer_uuid, page_columns.request)
    yield HoldsRead(load_hold_uuids(transaction), load_draws(transaction, uuids))
