# SPDX-License-Identifier: Apache-2.0
"""The queries and functions that find inconsistent rows, by kind of finding."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Any

from treeclaim.model.extension.audit import FindingKind, Findings, LivingConsumers
from treeclaim.model.names import (
    CUSTOM_PREFIX,
    FIRST_CUSTOM_CLASS_ID,
    SHARING_TRAIT,
    UNKNOWN_TYPE,
)
from treeclaim.model.provider import Effect, Inventory
from treeclaim.store.database.transactions import ReadTransaction, as_datetime
from treeclaim.store.reading.holders import CONSUMERS_WITHOUT_RECORD, find_holders, load_requests
from treeclaim.store.reading.holds import EXISTING_HOLDS
from treeclaim.store.reading.inventories import INVENTORY_COLUMNS, USED
from treeclaim.store.schema.tables import ROWS_OF_PROVIDERS

ToleratedKeys = Callable[[Sequence[str], Mapping[str, int]], frozenset[str]]
"""Returns the condition keys that a kept request tolerates, given the units of its consumer by class.

An invalid request tolerates none (contract page 100, section 4)."""

PROVIDER_TABLES = {str(table.name): table for table in ROWS_OF_PROVIDERS}

_EXPIRY_MARGIN = timedelta(minutes=1)
"""An existing hold is a finding if its end is longer ago."""

Item = Mapping[str, Any]
"""A finding in the form of the response."""

_MEMBERS = """
(
    SELECT p.id, COALESCE(root.id, p.id) AS root_id, COALESCE(root.uuid, p.uuid) AS uuid,
        CASE WHEN root.id IS NULL THEN p.name ELSE root.name END AS name
    FROM resource_providers p
    LEFT JOIN resource_providers root ON root.id = p.root_provider_id
) members
"""
"""All providers with their stored roots; a provider without an existing root is its own root."""

_DESCENDANTS = """
down (id, top) AS (
    SELECT id, id FROM resource_providers WHERE parent_provider_id IS NULL
    UNION ALL SELECT p.id, down.top FROM down
    JOIN resource_providers p ON p.parent_provider_id = down.id
)
"""
"""All providers below a provider without a parent, each with this topmost ancestor."""

_ALLOCATION_COLUMNS = "allocations.consumer_id, p.uuid, c.name, allocations.used"
_ON_PROVIDER = """
JOIN resource_providers p ON p.id = allocations.resource_provider_id
LEFT JOIN resource_classes c ON c.id = allocations.resource_class_id
"""
_INVENTORY = """
inventories ON inventories.resource_provider_id = allocations.resource_provider_id
AND inventories.resource_class_id = allocations.resource_class_id
"""
_ALLOCATION = ("consumer", "provider", "resource_class", "used")
_ROWS_WITHOUT_PROVIDER = " UNION ALL ".join(
    f"SELECT DISTINCT '{name}', resource_provider_id, {position} AS part FROM {name} WHERE NOT EXISTS "
    f"(SELECT 1 FROM resource_providers WHERE id = {name}.resource_provider_id)"
    for position, name in enumerate(PROVIDER_TABLES)
)

_QUERIES: Mapping[FindingKind, tuple[str, Sequence[str]]] = {
    FindingKind.AGAINST_UNITS: (
        # Units do not apply to holds.
        f"""
        SELECT {_ALLOCATION_COLUMNS} FROM allocations {_ON_PROVIDER} JOIN {_INVENTORY}
        WHERE allocations.consumer_id NOT IN ({EXISTING_HOLDS}) AND (
            allocations.used < min_unit OR allocations.used > max_unit
            OR allocations.used % step_size <> 0
        )
        ORDER BY allocations.id
        """,
        _ALLOCATION,
    ),
    FindingKind.WITHOUT_INVENTORY: (
        f"""
        SELECT {_ALLOCATION_COLUMNS} FROM allocations {_ON_PROVIDER} LEFT JOIN {_INVENTORY}
        WHERE inventories.id IS NULL ORDER BY allocations.id
        """,
        _ALLOCATION,
    ),
    FindingKind.WITHOUT_PROVIDER: (
        f"{_ROWS_WITHOUT_PROVIDER} ORDER BY part, resource_provider_id",
        ("table", "provider_id"),
    ),
    FindingKind.WITHOUT_CONSUMER: (
        f"{CONSUMERS_WITHOUT_RECORD} ORDER BY consumer_id",
        ("consumer",),
    ),
    FindingKind.EMPTY_CONSUMER: (
        f"""
        SELECT uuid FROM consumers LEFT JOIN allocations ON allocations.consumer_id = consumers.uuid
        WHERE allocations.id IS NULL AND (
            uuid NOT IN ({EXISTING_HOLDS}) OR uuid NOT IN (SELECT hold_uuid FROM treeclaim_draws)
        )
        ORDER BY uuid
        """,
        ("consumer",),
    ),
    FindingKind.BROKEN_ROOT: (
        f"""
        WITH RECURSIVE {_DESCENDANTS}
        SELECT p.uuid FROM down JOIN resource_providers p ON p.id = down.id
        WHERE p.root_provider_id IS NULL OR p.root_provider_id <> down.top ORDER BY p.id
        """,
        ("provider",),
    ),
    FindingKind.BROKEN_PARENT: (
        # UNION without ALL ends the recursion in a cycle. PostgreSQL would execute NOT IN again for each row.
        f"""
        WITH RECURSIVE {_DESCENDANTS}, up (below, above) AS (
            SELECT id, parent_provider_id FROM resource_providers p
            WHERE NOT EXISTS (SELECT 1 FROM down WHERE down.id = p.id)
            UNION SELECT up.below, p.parent_provider_id FROM up
            JOIN resource_providers p ON p.id = up.above
        )
        SELECT uuid FROM resource_providers p WHERE id IN (SELECT below FROM up WHERE above = below)
        OR parent_provider_id IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM resource_providers WHERE id = p.parent_provider_id
        )
        ORDER BY id
        """,
        ("provider",),
    ),
    FindingKind.EMPTY_TREE: (
        f"""
        SELECT members.uuid FROM {_MEMBERS}
        LEFT JOIN inventories ON resource_provider_id = members.id
        GROUP BY root_id, members.uuid HAVING COUNT(inventories.id) = 0 ORDER BY root_id
        """,
        ("uuid",),
    ),
    FindingKind.UNUSED_AGGREGATE: (
        """
        SELECT uuid FROM placement_aggregates
        WHERE id NOT IN (SELECT aggregate_id FROM resource_provider_aggregates) ORDER BY uuid
        """,
        ("uuid",),
    ),
    FindingKind.UNUSED_TRAIT: (
        f"""
        SELECT name FROM traits WHERE substr(name, 1, {len(CUSTOM_PREFIX)}) = '{CUSTOM_PREFIX}'
        AND id NOT IN (SELECT trait_id FROM resource_provider_traits) ORDER BY name
        """,
        ("name",),
    ),
    FindingKind.UNUSED_CLASS: (
        f"""
        SELECT name FROM resource_classes WHERE id >= {FIRST_CUSTOM_CLASS_ID}
        AND id NOT IN (SELECT resource_class_id FROM inventories)
        AND id NOT IN (SELECT resource_class_id FROM allocations) ORDER BY name
        """,
        ("name",),
    ),
    FindingKind.EXPIRED_HOLD: (
        f"""
        SELECT uuid FROM treeclaim_holds WHERE uuid IN ({EXISTING_HOLDS}) AND ends_at <= :late
        ORDER BY uuid
        """,
        ("consumer",),
    ),
    FindingKind.BROKEN_HOLD: (
        f"""
        SELECT uuid FROM treeclaim_holds WHERE uuid NOT IN ({EXISTING_HOLDS})
        UNION SELECT hold_uuid FROM treeclaim_draws WHERE hold_uuid NOT IN ({EXISTING_HOLDS})
        ORDER BY uuid
        """,
        ("consumer",),
    ),
    FindingKind.BROKEN_DRAW: (
        f"""
        SELECT drawn.consumer_uuid, p.uuid, c.name, COALESCE(allocations.used, 0), drawn.amount
        FROM (
            SELECT consumer_uuid, provider_id, class_id, SUM(amount) AS amount FROM treeclaim_draws
            WHERE hold_uuid IN ({EXISTING_HOLDS}) GROUP BY consumer_uuid, provider_id, class_id
        ) drawn
        LEFT JOIN allocations ON allocations.consumer_id = drawn.consumer_uuid
            AND allocations.resource_provider_id = drawn.provider_id
            AND allocations.resource_class_id = drawn.class_id
        LEFT JOIN resource_providers p ON p.id = drawn.provider_id
        LEFT JOIN resource_classes c ON c.id = drawn.class_id
        WHERE drawn.amount > COALESCE(allocations.used, 0)
        ORDER BY drawn.consumer_uuid, drawn.provider_id, drawn.class_id
        """,
        (*_ALLOCATION, "drawn"),
    ),
}
"""The ordered query of each kind, and the names of its first columns in the response."""

_IN_MANY_TREES = f"""
SELECT DISTINCT allocations.consumer_id, root_id, members.uuid, members.name, EXISTS (
    SELECT 1 FROM resource_provider_traits JOIN traits ON traits.id = trait_id
    WHERE traits.name = '{SHARING_TRAIT}' AND resource_provider_traits.resource_provider_id = members.id
) AS is_sharing
FROM allocations JOIN {_MEMBERS} ON members.id = allocations.resource_provider_id
WHERE allocations.consumer_id IN (
    SELECT consumer_id FROM allocations
    JOIN resource_providers p ON p.id = allocations.resource_provider_id
    GROUP BY consumer_id HAVING COUNT(DISTINCT COALESCE(p.root_provider_id, p.id)) > 1
) AND allocations.consumer_id NOT IN ({EXISTING_HOLDS})
ORDER BY consumer_id, root_id
"""
_ROOTS = """
SELECT uuid, name FROM resource_providers WHERE parent_provider_id IS NULL ORDER BY id
"""

_USED_INVENTORIES = f"""
SELECT p.uuid, c.name, {USED}, {INVENTORY_COLUMNS} FROM inventories
JOIN resource_providers p ON p.id = inventories.resource_provider_id
JOIN resource_classes c ON c.id = inventories.resource_class_id
ORDER BY inventories.id
"""
_MUST_LEAVE = f"""
WITH RECURSIVE down (head, name, below) AS (
    SELECT resource_provider_id, name, resource_provider_id FROM treeclaim_conditions
    WHERE effect = {int(Effect.LEAVE)} AND began AND (ends_at IS NULL OR ends_at > :now)
    UNION
    SELECT down.head, down.name, p.id FROM down
    JOIN resource_providers p ON p.parent_provider_id = down.below
)
SELECT a.consumer_id AS consumer, p.id AS head, p.uuid AS provider, down.name AS name FROM down
JOIN allocations a ON a.resource_provider_id = down.below
JOIN resource_providers p ON p.id = down.head
UNION
SELECT a.consumer_id, p.id, p.uuid, down.name FROM down
JOIN treeclaim_consumption c ON c.consumed_provider_id = down.below
JOIN allocations a ON a.resource_provider_id = c.resource_provider_id
    AND a.resource_class_id = c.resource_class_id
JOIN resource_providers p ON p.id = down.head
ORDER BY consumer, head, name
"""
_HOLDERS = """
SELECT consumers.uuid, consumers.generation, t.name AS type,
    MAX(COALESCE(allocations.updated_at, allocations.created_at)) AS newest
FROM consumers JOIN allocations ON allocations.consumer_id = consumers.uuid
LEFT JOIN consumer_types t ON t.id = consumers.consumer_type_id
GROUP BY consumers.uuid, consumers.generation, t.name ORDER BY consumers.uuid
"""


def load_findings(
    transaction: ReadTransaction,
    kinds: Sequence[FindingKind],
    limit: int,
    tolerated_keys: ToleratedKeys,
    living: LivingConsumers | None = None,
) -> dict[FindingKind, Findings]:
    """Load the findings of some kinds, in the order of the kinds; skip `ORPHANED` without `living`."""
    # The queries scan whole tables.
    transaction.extend_timeouts()
    findings = {
        kind: _run_query(transaction, *_QUERIES[kind], limit) for kind in kinds if kind in _QUERIES
    }
    for kind, find in _FINDERS.items():
        if kind in kinds:
            findings[kind] = Findings.of([*find(transaction)], limit)
    if FindingKind.MUST_LEAVE in kinds:
        findings[FindingKind.MUST_LEAVE] = _find_leaving(transaction, limit, tolerated_keys)
    if FindingKind.ORPHANED in kinds and living is not None:
        findings[FindingKind.ORPHANED] = find_orphans(transaction, limit, living)
    return {kind: findings[kind] for kind in kinds if kind in findings}


def _run_query(
    transaction: ReadTransaction, sql: str, names: Sequence[str], limit: int
) -> Findings:
    """Count the rows of a query, and load the first `limit` rows."""
    values = {"late": transaction.now - _EXPIRY_MARGIN} if ":late" in sql else {}
    count = int(transaction.scalar(f"SELECT COUNT(*) FROM ({sql}) findings", **values))
    rows = transaction.rows(f"{sql} LIMIT :most", most=limit, **values) if count else ()
    # The sum of integers is a decimal on some databases.
    return Findings(
        count,
        [
            {
                name: int(value) if isinstance(value, Decimal) else value
                for name, value in zip(names, row, strict=False)
            }
            for row in rows
        ],
    )


def _find_overuse(transaction: ReadTransaction) -> Iterator[Item]:
    for uuid, name, used, *amounts in transaction.each(_USED_INVENTORIES):
        capacity = max(Inventory(*amounts).whole_capacity, 0)
        if used > capacity:
            yield {
                "provider": uuid,
                "resource_class": name,
                "capacity": capacity,
                "used": int(used),
            }


def _find_split_consumers(transaction: ReadTransaction) -> Iterator[Item]:
    """Yield consumers with allocations in several trees.

    Sharing providers count only for a consumer of sharing providers alone (contract page 98).
    """
    for consumer, rows in groupby(transaction.each(_IN_MANY_TREES), itemgetter(0)):
        members = list(rows)
        counted_members = [member for member in members if not member.is_sharing] or members
        roots = {member.root_id: _show_root(member) for member in counted_members}
        if len(roots) > 1:
            yield {"consumer": consumer, "root_providers": list(roots.values())}


def _find_same_hosts(transaction: ReadTransaction) -> Iterator[Item]:
    """Yield groups of roots that name the same host: equal without case and domain."""
    roots = [(row, (row.name or "").lower()) for row in transaction.each(_ROOTS)]
    all_names = {name for _, name in roots}
    hosts: dict[str, list[Any]] = defaultdict(list)
    for row, name in roots:
        hosts[_find_host_name(name, all_names)].append(row)
    for _, rows in sorted(hosts.items()):
        if len(rows) > 1:
            yield {"root_providers": list(map(_show_root, rows))}


def _find_host_name(name: str, all_names: Collection[str]) -> str:
    """Return the shortest of all names that, followed by a dot, begins this name; else the name."""
    end = name.find(".", 1)
    while end > 0:
        if name[:end] in all_names:
            return name[:end]
        end = name.find(".", end + 1)
    return name


def _show_root(row: Any) -> dict[str, str]:
    return {"uuid": row.uuid, "name": row.name or ""}


_FINDERS: Mapping[FindingKind, Callable[[ReadTransaction], Iterator[Item]]] = {
    FindingKind.OVER_CAPACITY: _find_overuse,
    FindingKind.IN_MANY_TREES: _find_split_consumers,
    FindingKind.SAME_HOST: _find_same_hosts,
}
"""The kinds that need more than one query."""


def _find_leaving(
    transaction: ReadTransaction, limit: int, tolerated_keys: ToleratedKeys
) -> Findings:
    """Find the consumers that a condition with the effect `leave` applies to, and that do not tolerate it."""
    rows = transaction.rows(_MUST_LEAVE, now=transaction.now)
    keys_by_consumer = _load_tolerated_keys(
        transaction, sorted({row.consumer for row in rows}), tolerated_keys
    )
    return Findings.of(
        [
            {"consumer": row.consumer, "provider": row.provider, "key": row.name}
            for row in rows
            if row.name not in keys_by_consumer.get(row.consumer, ())
        ],
        limit,
    )


def _load_tolerated_keys(
    transaction: ReadTransaction, uuids: Sequence[str], tolerated_keys: ToleratedKeys
) -> dict[str, frozenset[str]]:
    requests = load_requests(transaction, uuids)
    holders = find_holders(transaction, sorted(requests), may_be_holds=True)
    keys_by_consumer = {}
    for uuid, holder in holders.items():
        units: Counter[str] = Counter()
        for amounts in holder.allocations.values():
            units.update(amounts)
        keys_by_consumer[uuid] = tolerated_keys(requests[uuid], +units)
    return keys_by_consumer


def find_orphans(transaction: ReadTransaction, limit: int, living: LivingConsumers) -> Findings:
    """Find unlisted consumers of listed types whose newest allocation is older than `living.older_than`."""
    cutoff = transaction.now - timedelta(seconds=living.older_than)
    orphans = []
    for row in transaction.each(_HOLDERS):
        living_uuids = living.uuids.get(row.type or UNKNOWN_TYPE)
        if living_uuids is None or row.uuid in living_uuids:
            continue
        # Old rows have no time.
        newest_time = as_datetime(row.newest)
        if newest_time is None or newest_time < cutoff:
            orphans.append({"consumer": row.uuid, "consumer_generation": row.generation})
    return Findings.of(orphans, limit)
