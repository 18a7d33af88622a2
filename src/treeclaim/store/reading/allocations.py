# SPDX-License-Identifier: Apache-2.0
"""Allocations on providers (contract page 70, section 6; page 99, section 1).

Queries skip allocations of consumers without a row, which old databases contain.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.store.database.transactions import ReadTransaction, to_timestamp

AllocationsByConsumer = dict[str, dict[str, Any]]
"""The allocations on a provider by consumer, as in the response."""

_ON_PROVIDERS = """
SELECT resource_provider_id, consumer_id, generation, resource_classes.name, used FROM allocations
JOIN consumers ON consumers.uuid = consumer_id
JOIN resource_classes ON resource_classes.id = resource_class_id
WHERE resource_provider_id IN :ids ORDER BY allocations.id
"""
# Not nested: SQLite would compute an inner join within an outer join for all allocations.
_ON_PROVIDER = """
SELECT consumer_id, consumers.generation, resource_classes.name, used,
    consumers.uuid AS recorded_consumer, allocations.created_at, allocations.updated_at,
    resource_providers.uuid, resource_providers.generation AS provider_generation
FROM resource_providers
LEFT JOIN allocations ON resource_provider_id = resource_providers.id
LEFT JOIN resource_classes ON resource_classes.id = resource_class_id
LEFT JOIN consumers ON consumers.uuid = consumer_id
WHERE resource_providers.uuid = :provider_uuid ORDER BY allocations.id
"""


def load_provider_allocations(
    transaction: ReadTransaction, provider_uuid: str
) -> tuple[AllocationsByConsumer, int, float | None]:
    """Return the allocations on a provider, its generation, and the time of its newest allocation.

    Raises:
        ProviderNotFoundError: if the provider does not exist.
    """
    provider_rows = transaction.rows(_ON_PROVIDER, provider_uuid=provider_uuid)
    # Some collations also match other spellings.
    if not provider_rows or provider_rows[0].uuid != provider_uuid:
        raise ProviderNotFoundError(provider_uuid)
    # A provider without allocations is one row of nulls.
    rows = [
        row for row in provider_rows if row.recorded_consumer is not None and row.name is not None
    ]
    allocations: AllocationsByConsumer = {}
    for consumer, generation, name, used, *_ in rows:
        _add_allocation(allocations, consumer, generation, name, used)
    return allocations, provider_rows[0].provider_generation or 0, find_newest_time(rows)


def load_allocations_by_provider(
    transaction: ReadTransaction, provider_ids: Sequence[int]
) -> dict[int, AllocationsByConsumer]:
    """Return the allocations on providers, by provider id; omit providers without allocations."""
    allocations: defaultdict[int, AllocationsByConsumer] = defaultdict(dict)
    rows = transaction.rows_in_chunks(_ON_PROVIDERS, ids=provider_ids)
    for provider_id, consumer, generation, name, used in rows:
        _add_allocation(allocations[provider_id], consumer, generation, name, used)
    return dict(allocations)


def _add_allocation(
    allocations: AllocationsByConsumer,
    consumer: str,
    generation: int | None,
    name: str,
    used: int,
) -> None:
    empty = {"resources": {}, "consumer_generation": generation or 0}
    allocations.setdefault(consumer, empty)["resources"][name] = used


def find_newest_time(rows: Iterable[Any]) -> float | None:
    """Return the time of the newest row in seconds since the epoch; None without rows."""
    return max((to_timestamp(row.updated_at, row.created_at) for row in rows), default=None)
