# SPDX-License-Identifier: Apache-2.0
"""How much is allocated of inventories with very many allocations, kept by counting what the feed records.

A claim is judged by the sum over the allocations of an inventory, which the database adds up. If these
are very many, a process keeps the sum with the cursor of the feed at which it was read, and counts along
as readers do (`rows.py`). A kept sum is never less than the one that the database would find, if the
provider is locked and its generation is the one counted up to. Decision 0033 proves it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from treeclaim.model.changes import Cursor
from treeclaim.store.database.transactions import Key, KnownSum, ReadTransaction
from treeclaim.store.feed.rows import FeedDelta
from treeclaim.store.feed.unread import (
    StreamRow,
    commits_since,
    counted_since,
    has_gap,
    reached_by,
    stream_rows,
)

_MOST_COMMITS = 256
"""How many commits are counted; beyond that, adding up again costs no more."""

_MOST_STEPS = 1_000
"""After how many steps of the generation a sum is added up again in any case."""

_MOST_SUMS = 1_000
"""How many sums are kept; beyond that, all are dropped. Each takes some 500 bytes."""


@dataclass(frozen=True, slots=True)
class _State:
    """Sums as they were at a cursor of the feed."""

    cursor: Cursor
    sums: Mapping[Key, KnownSum] = field(default_factory=dict)


class KeptSums:
    """Sums that one process keeps; threads may share it, as each state is whole and never changes."""

    def __init__(self) -> None:
        self._state: _State | None = None

    def __contains__(self, key: Key) -> bool:
        """Tell whether the sum of an inventory is kept, however old."""
        return self._state is not None and key in self._state.sums

    def counted(self, transaction: ReadTransaction) -> Mapping[Key, KnownSum]:
        """Return all sums that are kept, with what was committed since counted.

        Args:
            transaction: It has changed nothing yet. A sum is good for a provider that it has locked, if
                the generation is the one counted to.
        """
        self._state = _counted(transaction, self._state)
        return self._state.sums

    def keep(self, transaction: ReadTransaction, sums: Mapping[Key, KnownSum]) -> None:
        """Keep sums that a transaction has read, before this call, of providers that it has locked."""
        state = _counted(transaction, self._state)
        known = {} if len(state.sums) + len(sums) > _MOST_SUMS else state.sums
        self._state = _State(state.cursor, {**known, **sums})


def _counted(transaction: ReadTransaction, state: _State | None) -> _State:
    """Bring sums to the present end of the feed; drop those for which it does not record everything."""
    rows = stream_rows(transaction)
    reached = reached_by(rows)
    if state is None or not state.sums or not _is_near(rows, state.cursor):
        return _State(reached)
    found = counted_since(transaction, rows, state.cursor.positions)
    # The rows may be of a later snapshot than the positions, and would be counted a second time.
    position = {row.id: row.position for row in rows}
    delta = FeedDelta.of(row for row in found if row.position <= position[row.stream_id])
    if delta.is_unknown:
        return _State(reached)
    sums = {key: _with(key, known, delta) for key, known in state.sums.items()}
    return _State(reached, {key: known for key, known in sums.items() if known is not None})


def _is_near(rows: list[StreamRow], cursor: Cursor) -> bool:
    return not has_gap(rows, cursor) and commits_since(rows, cursor.positions) <= _MOST_COMMITS


def _with(key: Key, known: KnownSum, delta: FeedDelta) -> KnownSum | None:
    """Return a sum with what was recorded of its provider; None if it has to be added up again."""
    provider_id, class_id = key
    if provider_id in delta.provider_ids:
        return None
    change = delta.usage.get(provider_id)
    if change is None:
        return known
    generation = known.generation + change.steps
    if generation > known.added_up_at + _MOST_STEPS:
        return None
    return replace(known, used=known.used + change.used.get(class_id, 0), generation=generation)
