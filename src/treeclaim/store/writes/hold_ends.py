# SPDX-License-Identifier: Apache-2.0
"""Finds expired holds (contract page 100, section 3) and conditions of providers (page 102, section 3).

The clock is the database's. Each process looks for expired ones and removes them, whether or not anybody asks;
a process that comes late finds nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from treeclaim.model.extension.holds import HOLD_TYPE
from treeclaim.store.database.transactions import as_datetime

CHECK_SECONDS = 0.4
"""Seconds between two checks: each is a query by an index. A hold ends a second after it was written at the
earliest, so a check finds it before its end."""

SOON = 0.01
"""Seconds until the next check after a removal: there may be more."""

_AT_ONCE = 100
"""Holds removed in one transaction."""

ENDS_THREAD = "treeclaim-holds"
"""Name of the thread that removes holds."""

_NO_PROVIDER = 0

NEXT_SQL = f"""
SELECT * FROM (
SELECT treeclaim_holds.uuid, treeclaim_holds.ends_at, {_NO_PROVIDER} FROM treeclaim_holds
JOIN consumers ON consumers.uuid = treeclaim_holds.uuid
JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id
WHERE treeclaim_holds.ends_at IS NOT NULL AND consumer_types.name = '{HOLD_TYPE}'
ORDER BY treeclaim_holds.ends_at LIMIT {_AT_ONCE}
) of_holds UNION ALL SELECT * FROM (
SELECT name, ends_at, resource_provider_id FROM treeclaim_conditions WHERE ends_at IS NOT NULL
ORDER BY ends_at LIMIT {_AT_ONCE}
) of_conditions
"""  # noqa: S608 - of constants
"""The holds and the conditions that end next, for the driver of any database: by uuid, and by key with the
provider's id."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The holds and conditions that have ended; some of them if there are many.

    Attributes:
        holds: Their UUIDs.
        conditions: Their provider ids and keys.
        seconds_to_next: Seconds until the next one ends; 0 if one has ended.
    """

    holds: Sequence[str] = ()
    conditions: Sequence[tuple[int, str]] = ()
    seconds_to_next: float = math.inf

    @classmethod
    def among(cls, rows: Sequence[tuple[str, datetime | str, int]], now: datetime) -> "Expired":
        """Return which of the rows of `NEXT_SQL` have ended by the database's clock."""
        ends = [(name, as_datetime(ends_at) or now, provider) for name, ends_at, provider in rows]
        over = [(name, provider) for name, ends_at, provider in ends if ends_at <= now]
        return cls(
            [uuid for uuid, provider in over if provider == _NO_PROVIDER],
            [(provider, key) for key, provider in over if provider != _NO_PROVIDER],
            max(min((end - now).total_seconds() for _, end, _ in ends), 0.0),
        )

    def __bool__(self) -> bool:
        """Return whether anything has ended."""
        return bool(self.holds or self.conditions)
