# SPDX-License-Identifier: Apache-2.0
"""How much a claim changed of a provider, as the text in the column `amounts` of the feed.

A JSON list of integers: the form, by how much the generation was raised, and to what; then each
class and by how much its usage rose. Whoever does not know the form loads the provider, as it does
where there is no text. The time is in the row: `created_at` is what `updated_at` of the provider
was set to, rounded by the database in the same way.
"""

from datetime import datetime
from functools import lru_cache

import orjson

from treeclaim.model.changes import UsageChange
from treeclaim.store.database.transactions import seconds
from treeclaim.store.schema.tables import LONGEST_AMOUNTS

_FORM = 1

_seconds = lru_cache(maxsize=16)(seconds)
"""All rows of a commit have one time, and a commit may have thousands."""


def written(change: UsageChange | None) -> str | None:
    """Return a change as text; None if readers are to load the provider instead.

    So they do where very many classes changed, as their text would not fit.
    """
    if change is None:
        return None
    numbers = [_FORM, change.steps, change.generation]
    for class_id, amount in change.used.items():
        if amount:
            numbers += class_id, amount
    text = orjson.dumps(numbers).decode()
    return text if len(text) <= LONGEST_AMOUNTS else None


def read(text: str | None, at: datetime | str) -> UsageChange | None:
    """Return the change that a text tells; None if the provider is to be loaded.

    Args:
        text: Of the column, None where it has none.
        at: `created_at` of the row, as a driver gives it.
    """
    numbers = [] if text is None else orjson.loads(text)
    if not numbers or numbers[0] != _FORM:
        return None
    _, steps, generation, *used = numbers
    amounts = dict(zip(used[::2], used[1::2], strict=True))
    return UsageChange(amounts, steps, generation, _seconds(at))
