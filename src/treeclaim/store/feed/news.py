# SPDX-License-Identifier: Apache-2.0
"""Reads the change feed for watchers: the changed providers, their parts and their trees.

The feed has the UUIDs of deleted providers and the former roots of moved providers. All else is read from the
tables of providers, in the same snapshot.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from treeclaim.model.changes import Cursor, News, ProviderChange
from treeclaim.model.parts import EVERYTHING, Part
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.rows import CATALOGUE, FORMAT, PROVIDER
from treeclaim.store.feed.shards import (
    has_all,
    load_chains,
    load_feed_rows,
    load_shards,
    make_cursor,
)

_CHANGES = "SELECT DISTINCT kind, object_id, format, parts, uuid, tree FROM treeclaim_feed"
_SELECT_PROVIDERS = """
SELECT p.id, p.uuid, COALESCE(p.generation, 0) AS generation, COALESCE(roots.uuid, p.uuid) AS root
FROM resource_providers p LEFT JOIN resource_providers roots ON roots.id = p.root_provider_id
"""
_WITH_ID = f"{_SELECT_PROVIDERS} WHERE p.id IN :keys"
_WITH_UUID = f"{_SELECT_PROVIDERS} WHERE p.uuid IN :keys"
_IN_TREES = f"{_SELECT_PROVIDERS} WHERE roots.uuid IN :keys"


def load_news(transaction: ReadTransaction, cursor: Cursor) -> News | None:
    """Return the changes committed since a cursor.

    Return None if the feed no longer has all of them (decision 0002), or has a row of another format.

    Raises:
        IncompleteViewError: if the snapshot lacks a commit.
    """
    shards = load_shards(transaction)
    if not has_all(transaction, cursor, shards, load_chains(transaction, cursor, shards)):
        return None
    feed_rows = load_feed_rows(transaction, cursor, shards, _CHANGES)
    if any(row.format != FORMAT for row in feed_rows):
        return None
    changes = _load_changes(transaction, [row for row in feed_rows if row.kind == PROVIDER])
    return News(make_cursor(shards), changes, any(row.kind == CATALOGUE for row in feed_rows))


def select_news(transaction: ReadTransaction, news: News, roots: Mapping[str, str | None]) -> News:
    """Return the news about the trees of watched providers.

    If a watched provider may have moved, the result has all providers of its former and its present tree,
    because these left or entered the watched trees. `roots` is the result of `load_roots` for the watched providers,
    in the snapshot of the news.
    """
    moves = [
        change
        for uuid in roots.keys() & news.changes.keys()
        if (change := news.changes[uuid]).may_be_a_move
    ]
    trees: set[str] = set()
    for change in moves:
        trees |= change.trees
        trees |= frozenset() if change.root is None else {change.root}
    return news.within(roots).with_members(_load_members(transaction, trees))


def _load_members(
    transaction: ReadTransaction, trees: Collection[str]
) -> dict[str, ProviderChange]:
    """Return all providers of the trees, given by the uuids of their roots, as moved providers."""
    return {
        row.uuid: ProviderChange(row.generation, Part.PROVIDER, frozenset((row.root,)), row.root)
        for row in transaction.rows_in_chunks(_IN_TREES, keys=sorted(trees))
        if row.root in trees
    }


def load_roots(transaction: ReadTransaction, uuids: Collection[str]) -> dict[str, str | None]:
    """Return the uuid of the root of each provider; None for an unknown provider."""
    root_by_uuid: dict[str, str | None] = dict.fromkeys(uuids)
    for row in transaction.rows_in_chunks(_WITH_UUID, keys=sorted(uuids)):
        if row.uuid in root_by_uuid:
            root_by_uuid[row.uuid] = row.root
    return root_by_uuid


def _load_changes(
    transaction: ReadTransaction, feed_rows: Sequence[Any]
) -> dict[str, ProviderChange]:
    """Return the changes of providers by uuid."""
    by_id: dict[int, list[Any]] = {}
    for row in feed_rows:
        by_id.setdefault(row.object_id, []).append(row)
    change_by_uuid: dict[str, ProviderChange] = {}
    for row in feed_rows:
        if row.uuid is not None:
            _add(change_by_uuid, row.uuid, _make_deletion(row, by_id))
    rows = transaction.rows_in_chunks(_WITH_ID, keys=sorted(by_id))
    provider_by_id = {row.id: row for row in rows}
    for provider_id, provider_rows in by_id.items():
        provider = provider_by_id.get(provider_id)
        if provider is not None:
            _add(change_by_uuid, provider.uuid, _make_change(provider, provider_rows))
    return change_by_uuid


def _add(change_by_uuid: dict[str, ProviderChange], uuid: str, change: ProviderChange) -> None:
    """Add a change to the changes of earlier providers with this uuid."""
    earlier_change = change_by_uuid.get(uuid)
    change_by_uuid[uuid] = change if earlier_change is None else change.after(earlier_change)


def _make_deletion(deletion: Any, by_id: Mapping[int, Sequence[Any]]) -> ProviderChange:
    former_trees = {row.tree for row in by_id[deletion.object_id] if row.tree is not None}
    return ProviderChange(None, EVERYTHING, frozenset(former_trees | {deletion.uuid}), None)


def _make_change(provider: Any, feed_rows: Sequence[Any]) -> ProviderChange:
    parts = Part(0)
    for row in feed_rows:
        parts |= Part(row.parts)
    trees = {provider.root} | {row.tree for row in feed_rows if row.tree is not None}
    return ProviderChange(provider.generation, parts, frozenset(trees), provider.root)
