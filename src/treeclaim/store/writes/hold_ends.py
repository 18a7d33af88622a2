# SPDX-License-Identifier: Apache-2.0
"""Removes expired holds, whether or not anybody asks (contract page 100, section 3).

It does the same with conditions of providers (page 102, section 3).

The clock is the database's. Each process checks now and then when the next hold ends, and waits for
that by the monotonic clock, so that it makes no difference what the machine's clock says. A hold ends
a second after it was written at the earliest, so what another process writes between two checks has
not ended at the second one. All processes remove what has ended: a late one finds nothing.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from treeclaim.model.extension.holds import HOLD_TYPE
from treeclaim.store.database.transactions import as_datetime

CHECK_SECONDS = 0.4
"""Seconds between two checks: each is a query by an index."""

_JITTER = 0.1
"""Seconds at most by which a process lets others remove first what has ended."""

_SOON = 0.01
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
class ExpiryCheck:
    """The ends of holds, as the database has them.

    Attributes:
        ended: Uuids of holds whose time is over, some of them if there are many.
        ended_conditions: The same of conditions, by provider id and key.
        wait: Seconds until the next one ends; None if none does.
        at: When, on the monotonic clock.
    """

    ended: Sequence[str]
    wait: float | None
    at: float
    ended_conditions: Sequence[tuple[int, str]] = ()

    @classmethod
    def of(
        cls, rows: Sequence[tuple[str, datetime | str, int]], now: datetime, at: float
    ) -> "ExpiryCheck":
        """Return which holds and conditions have ended.

        Args:
            rows: The rows of `NEXT_SQL`.
            now: By the database's clock.
            at: When they were requested, on the monotonic clock.
        """
        ends = [(name, as_datetime(ends_at) or now, provider) for name, ends_at, provider in rows]
        later = [ends_at for _, ends_at, _ in ends if ends_at > now]
        over = [(name, provider) for name, ends_at, provider in ends if ends_at <= now]
        return cls(
            ended=[uuid for uuid, provider in over if provider == _NO_PROVIDER],
            wait=(min(later) - now).total_seconds() if later else None,
            at=at,
            ended_conditions=[
                (provider, key) for key, provider in over if provider != _NO_PROVIDER
            ],
        )

    @property
    def has_ended(self) -> bool:
        """Return whether anything had ended at the time of the check."""
        return bool(self.ended or self.ended_conditions)

    @property
    def is_due(self) -> bool:
        """Return whether anything has ended by now, or may have since an old check."""
        age = monotonic() - self.at
        return self.has_ended or age > 2 * CHECK_SECONDS or (self.wait or age + 1) <= age

    @property
    def seconds_to_next(self) -> float:
        """Return the seconds until the next check, once the holds that have ended are removed."""
        if self.has_ended:
            return _SOON
        wait = CHECK_SECONDS if self.wait is None else self.wait + random.random() * _JITTER  # noqa: S311
        return min(wait, CHECK_SECONDS)
