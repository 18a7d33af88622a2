# SPDX-License-Identifier: Apache-2.0
"""Reads the change feed for watchers: which providers changed, which parts, in which trees.

For providers that exist, uuid, generation and root are read beside the feed, in the same snapshot;
the feed itself has those of providers that are gone, and the roots that were left.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from treeclaim.model.changes import Cursor
from treeclaim.model.extension.cursor_text import WrittenCursor
from treeclaim.model.extension.news import News, ProviderChange
from treeclaim.model.parts import EVERYTHING, Part
from treeclaim.store.database.compiled import bind_list
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.rows import CATALOGUE, FORMAT, PROVIDER
from treeclaim.store.feed.unread import (
    StreamRow,
    feed_since,
    has_gap,
    reached_by,
    stream_rows,
)
from treeclaim.store.schema.tables import feed, resource_providers

_TOLD = sa.select(
    feed.c.kind, feed.c.object_id, feed.c.format, feed.c.parts, feed.c.uuid, feed.c.tree
).distinct()
_ROOTS = resource_providers.alias("roots")
_PRESENT = sa.select(
    resource_providers.c.id,
    resource_providers.c.uuid,
    sa.func.coalesce(resource_providers.c.generation, 0).label("generation"),
    sa.func.coalesce(_ROOTS.c.uuid, resource_providers.c.uuid).label("root"),
).select_from(
    resource_providers.outerjoin(_ROOTS, _ROOTS.c.id == resource_providers.c.root_provider_id)
)
_WITH_ID, _WITH_UUID, _IN_TREES = (
    _PRESENT.where(column.in_(bind_list("wanted")))
    for column in (resource_providers.c.id, resource_providers.c.uuid, _ROOTS.c.uuid)
)


def news_since(transaction: ReadTransaction, since: Cursor | WrittenCursor) -> News | None:
    """Return what was committed since a cursor; None if that cannot be known any more.

    It cannot be where a reader of the feed would load everything (decision 0002), and where a row has
    another format.
    """
    rows = stream_rows(transaction)
    cursor = since if isinstance(since, Cursor) else resolve_cursor(rows, since)
    if cursor is None or has_gap(rows, cursor):
        return None
    feed_rows = feed_since(transaction, rows, cursor.positions, _TOLD)
    if any(row.format != FORMAT for row in feed_rows):
        return None
    changes = _changes(transaction, [row for row in feed_rows if row.kind == PROVIDER])
    return News(reached_by(rows), changes, any(row.kind == CATALOGUE for row in feed_rows))


def news_within(transaction: ReadTransaction, news: News, roots: Mapping[str, str | None]) -> News:
    """Return the part of some news that is about the trees of some providers.

    Where one of these may have moved, all is told of the trees that it was and is in: the former have
    left, and the latter have come, though nobody touched them.

    Args:
        transaction: The transaction of the snapshot in which the news was read.
        news: All of them.
        roots: What `roots_of` says of these providers.
    """
    moved = [
        change
        for uuid in roots.keys() & news.changes.keys()
        if (change := news.changes[uuid]).may_be_a_move
    ]
    trees: set[str] = set()
    for change in moved:
        trees |= change.trees
        trees |= frozenset() if change.root is None else {change.root}
    return news.within(roots).beside(members_of(transaction, trees))


def members_of(transaction: ReadTransaction, trees: Collection[str]) -> dict[str, ProviderChange]:
    """Return all providers of some trees, by the uuids of their roots, as providers that have another tree."""
    change_by_uuid: dict[str, ProviderChange] = {}
    for row in transaction.rows_in_chunks(_IN_TREES, wanted=sorted(trees)):
        if row.root in trees:
            change_by_uuid[row.uuid] = ProviderChange(
                row.generation, Part.PROVIDER, frozenset((row.root,)), row.root
            )
    return change_by_uuid


def resolve_cursor(rows: Sequence[StreamRow], written: WrittenCursor) -> Cursor | None:
    """Return the cursor that a text means; None if its streams cannot be told from others.

    A text names the streams that were open. Those that were closed up to its epoch had been seen to
    their ends.
    """
    epochs = {row.identity: row.epoch for row in rows if row.epoch is not None}
    if written.epoch not in epochs:
        return None
    seen_to = epochs[written.epoch]
    closed = [row for row in rows if row.closed_in is not None and row.closed_in <= seen_to]
    finished = epochs.keys() | {row.identity for row in closed}
    positions = {row.identity: row.position for row in rows if row.identity in finished}
    streams = [row for row in rows if row.identity not in finished]
    by_short: dict[int, int] = {}
    for row in streams:
        short = written.short(row.identity)
        if short in by_short and short in written.positions:
            return None
        by_short[short] = row.identity
    for short, position in written.positions.items():
        if short not in by_short:
            return None
        positions[by_short[short]] = position
    return Cursor(positions, written.epoch, frozenset(finished))


def roots_of(transaction: ReadTransaction, uuids: Collection[str]) -> dict[str, str | None]:
    """Return the tree of each of some providers, by the uuid of its root; None for unknown ones."""
    root_by_uuid: dict[str, str | None] = dict.fromkeys(uuids)
    for row in transaction.rows_in_chunks(_WITH_UUID, wanted=sorted(uuids)):
        if row.uuid in root_by_uuid:
            root_by_uuid[row.uuid] = row.root
    return root_by_uuid


def _changes(transaction: ReadTransaction, feed_rows: Sequence[Any]) -> dict[str, ProviderChange]:
    """Return the changes by uuid."""
    by_id: dict[int, list[Any]] = {}
    for row in feed_rows:
        by_id.setdefault(row.object_id, []).append(row)
    change_by_uuid: dict[str, ProviderChange] = {}
    for row in feed_rows:
        if row.uuid is not None:
            _add(change_by_uuid, row.uuid, _deletion_of(row, by_id))
    rows = transaction.rows_in_chunks(_WITH_ID, wanted=sorted(by_id))
    present = {row.id: row for row in rows}
    for provider_id, of_provider in by_id.items():
        provider = present.get(provider_id)
        if provider is not None:
            _add(change_by_uuid, provider.uuid, _change_of(provider, of_provider))
    return change_by_uuid


def _add(change_by_uuid: dict[str, ProviderChange], uuid: str, change: ProviderChange) -> None:
    """Note a change, beside what became of earlier providers of that uuid."""
    earlier = change_by_uuid.get(uuid)
    change_by_uuid[uuid] = change if earlier is None else change.after(earlier)


def _deletion_of(deletion: Any, by_id: Mapping[int, Sequence[Any]]) -> ProviderChange:
    former_trees = {row.tree for row in by_id[deletion.object_id] if row.tree is not None}
    return ProviderChange(None, EVERYTHING, frozenset(former_trees | {deletion.uuid}), None)


def _change_of(provider: Any, feed_rows: Sequence[Any]) -> ProviderChange:
    parts = Part(0)
    for row in feed_rows:
        parts |= Part(row.parts)
    trees = {provider.root} | {row.tree for row in feed_rows if row.tree is not None}
    return ProviderChange(provider.generation, parts, frozenset(trees), provider.root)
