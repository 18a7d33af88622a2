# SPDX-License-Identifier: Apache-2.0
"""Consumers for plans: their allocations, owners, requests and draws (contract page 101), as columns."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from treeclaim.model.extension.planning import (
    AllocationColumns,
    ConsumerSnapshotPart,
    HoldSnapshot,
    OwnerColumns,
    RequestColumns,
)
from treeclaim.store.database.transactions import ReadTransaction, chunks
from treeclaim.store.reading.holds import EXISTING_HOLDS, load_draws
from treeclaim.store.reading.providers.json_columns import Expressions, as_columns, columns

_AT_ONCE = 20_000
"""Rows in one statement: a few megabytes, so that round trips are negligible."""

_BELOW_ALL_IDS = -(2**31)
"""Value below the id of any row."""


class _PagedQuery:
    """The query of a part, for all consumers or for named ones.

    `kind` has an attribute for each of the `expressions` except "sort_key". `uuid` is the column of the UUID of the
    consumer, and `first_key` a value below any sort key.
    """

    def __init__(
        self,
        kind: Callable[..., ConsumerSnapshotPart],
        expressions: Expressions,
        source: str,
        uuid: str,
        first_key: Any,
    ) -> None:
        key = expressions["sort_key"]
        rows = f"FROM {source} WHERE"
        page = f"{rows} {key} > :after ORDER BY {key} LIMIT :most"
        self._page_query = as_columns(expressions, page)
        self._named_query = as_columns(expressions, f"{rows} {uuid} IN :uuids ORDER BY {key}")
        self._kind = kind
        self._first_key = first_key

    def load(
        self, transaction: ReadTransaction, uuids: Sequence[str] | None
    ) -> Iterator[ConsumerSnapshotPart]:
        """Yield the part of consumers (None for all), page by page."""
        for chunk in chunks(uuids or ()):
            page = columns(transaction, self._named_query, uuids=list(chunk))
            del page["sort_key"]
            yield self._kind(**page)
        keys = [self._first_key] if uuids is None else []
        while keys:
            page = columns(transaction, self._page_query, after=max(keys), most=_AT_ONCE)
            if keys := page.pop("sort_key"):
                yield self._kind(**page)


_PARTS = (
    _PagedQuery(
        AllocationColumns,
        {
            "sort_key": "id",
            "consumer": "PLAIN(consumer_id)",
            "provider_id": "resource_provider_id",
            "class_id": "resource_class_id",
            "used": "used",
        },
        "allocations",
        "consumer_id",
        _BELOW_ALL_IDS,
    ),
    _PagedQuery(
        OwnerColumns,
        {
            "sort_key": "consumers.id",
            "uuid": "PLAIN(consumers.uuid)",
            "project": "PLAIN(projects.external_id)",
            "type": "PLAIN(consumer_types.name)",
            "generation": "COALESCE(consumers.generation, 0)",
        },
        "consumers JOIN projects ON projects.id = consumers.project_id "
        "LEFT JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id",
        "consumers.uuid",
        _BELOW_ALL_IDS,
    ),
    _PagedQuery(
        RequestColumns,
        {
            "sort_key": "consumer_uuid",
            "consumer": "PLAIN(consumer_uuid)",
            "request": "PLAIN(request)",
        },
        "treeclaim_requests",
        "consumer_uuid",
        "",
    ),
)


def load_planned_consumers(
    transaction: ReadTransaction, uuids: Sequence[str] | None = None
) -> Iterator[ConsumerSnapshotPart]:
    """Yield the records of consumers (None for all), part by part."""
    for part in _PARTS:
        yield from part.load(transaction, uuids)
    hold_uuids = frozenset(uuid for (uuid,) in transaction.rows(EXISTING_HOLDS))
    yield HoldSnapshot(hold_uuids, load_draws(transaction, uuids))
