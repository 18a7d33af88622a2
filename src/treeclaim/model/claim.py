# SPDX-License-Identifier: Apache-2.0
"""Claims, and holds: consumers that reserve resources for later claims (contract page 100)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from treeclaim.model.provider import Inventory

HOLD_TYPE = "TREECLAIM_HOLD"
"""Consumer type of holds."""

MOST_PROJECTS = 64
"""Most projects of a hold's terms."""

LONGEST_NOTE = 255
"""Most characters of the note of a hold."""

MOST_SOURCES = 64
"""Most holds from which one consumer of a write, or one query, draws."""

LONGEST_REQUEST = 16_384
"""Most bytes of a stored request, as JSON."""

REQUEST_RETENTION = timedelta(days=1)
"""Time for which a request is stored after the record of its consumer is deleted."""

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)

Amounts = Mapping[str, Mapping[str, int]]
"""Amounts by provider uuid and resource class."""


def parse_utc(text: str) -> datetime | None:
    """Parse a time of RFC 3339 into naive UTC; return None for any other text."""
    if _TIME.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class HoldTerms:
    """The terms of a hold (section 1).

    Attributes:
        until: Expiry by the database's clock, in naive UTC and whole seconds; None for never.
        returns: Whether the hold gets drawn amounts back when their consumer is released.
        projects: Further projects whose consumers may draw from the hold.
    """

    until: datetime | None = None
    returns: bool = False
    projects: tuple[str, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class StoredHold:
    """An existing hold without its allocations, and the amounts that are drawn and not returned."""

    project_id: str
    terms: HoldTerms
    drawn: Amounts

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of the member `hold`."""
        until = self.terms.until
        return {
            "until": None if until is None else f"{until.isoformat(timespec='seconds')}Z",
            "returns": self.terms.returns,
            "projects": list(self.terms.projects),
            "note": self.terms.note,
            "drawn": self.drawn,
        }


class Omission(Enum):
    """Marks a value that a client omits, and that is therefore not compared or not changed."""

    OMITTED = "omitted"


@dataclass(frozen=True, slots=True)
class ConsumerClaim:
    """The new allocations of one consumer, which replace the present ones (page 70, section 1.3).

    Attributes:
        allocations: Empty to remove all.
        generation: The consumer's generation in the request; None for a new consumer.
        consumer_type: `HOLD_TYPE` for a hold.
        knows_holds: Whether the client uses holds (contract page 100). Otherwise the type of an existing consumer stays.
        hold: Terms of a new or changed hold; None to leave them unchanged.
        from_holds: Uuids of holds to draw from, in this order.
        request: The queries of the consumer's placement; None to delete stored ones.
        tolerates: Keys of conditions that do not affect the consumer (contract page 102, section 3).
    """

    consumer_uuid: str
    allocations: Amounts
    project_id: str
    user_id: str
    generation: int | Omission | None = Omission.OMITTED
    consumer_type: str | Omission = Omission.OMITTED
    knows_holds: bool = False
    hold: HoldTerms | None = None
    from_holds: Sequence[str] = ()
    request: Sequence[str] | Omission | None = Omission.OMITTED
    tolerates: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ReshapedInventory:
    """The complete new inventory of one provider in a reshape, by class (contract page 75)."""

    provider_uuid: str
    generation: int
    inventories: Mapping[str, Inventory]
