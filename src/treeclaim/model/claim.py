# SPDX-License-Identifier: Apache-2.0
"""Claims, allocations, and holds: consumers that keep resources for later claims (contract page 100)."""

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
"""Projects beside a hold's own whose consumers may draw from it."""

LONGEST_NOTE = 255
"""Characters of a note."""

MOST_SOURCES = 64
"""Holds that one consumer of a write, or one query, may draw from."""

LONGEST_REQUEST = 16_384
"""Bytes of a kept request, as JSON."""

REQUEST_RETENTION = timedelta(days=1)
"""The time for which a kept request outlives the record of its consumer."""

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)

Amounts = Mapping[str, Mapping[str, int]]
"""Amounts by provider uuid and resource class."""


def parse_utc(text: str) -> datetime | None:
    """Return a time in the form of RFC 3339 as naive UTC; None for another text."""
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
        until: When it ends, by the database's clock: naive UTC in whole seconds; None for never.
        returns: Whether amounts drawn from it return when the consumer is released.
        projects: Projects, beside its own, whose consumers may draw.
        note: For people; None for none.
    """

    until: datetime | None = None
    returns: bool = False
    projects: tuple[str, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class StoredHold:
    """An existing hold, without its amounts.

    Attributes:
        project_id: Its own project.
        terms: Its terms.
        drawn: Amounts drawn from it and not returned.
    """

    project_id: str
    terms: HoldTerms
    drawn: Amounts

    def to_document(self) -> dict[str, Any]:
        """Return the member `hold` by which clients see it."""
        until = self.terms.until
        return {
            "until": None if until is None else f"{until.isoformat(timespec='seconds')}Z",
            "returns": self.terms.returns,
            "projects": list(self.terms.projects),
            "note": self.terms.note,
            "drawn": self.drawn,
        }


class Omission(Enum):
    """Marks a value that a client omits: it is not compared, or stays as it is."""

    OMITTED = "omitted"


@dataclass(frozen=True, slots=True)
class ConsumerClaim:
    """The allocations that replace those of one consumer (page 70, section 1.3).

    Attributes:
        consumer_uuid: Lower-case dashed uuid.
        allocations: Amounts by provider uuid and resource class name; empty removes all.
        project_id: Owner.
        user_id: Owner.
        generation: The consumer's generation that the client sent; None for a new consumer.
        consumer_type: Type name; of a hold, that of holds.
        knows_holds: Whether the client uses holds (contract page 100). The type of a consumer is kept
            otherwise.
        hold: Terms of a hold that it makes or changes; None for none, and for those that it has.
        from_holds: Uuids of holds to draw from, in this order.
        request: The queries that it was placed by; None to forget them.
        tolerates: Keys of conditions that do not count for it (contract page 102, section 3).
    """

    consumer_uuid: str
    allocations: Mapping[str, Mapping[str, int]]
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
    """The complete new inventory of one provider in a reshape (contract page 75).

    Attributes:
        provider_uuid: The provider.
        generation: The provider's generation that the client knows.
        inventories: By resource class name.
    """

    provider_uuid: str
    generation: int
    inventories: Mapping[str, Inventory]
