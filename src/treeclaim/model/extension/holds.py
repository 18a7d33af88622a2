# SPDX-License-Identifier: Apache-2.0
"""Holds: consumers that keep resources for claims to come (contract page 100)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

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

OUTLIVES = timedelta(days=1)
"""The time for which a kept request outlives the record of its consumer."""

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)

Amounts = Mapping[str, Mapping[str, int]]
"""Amounts by provider uuid and resource class."""


def utc_of(text: str) -> datetime | None:
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
        returns: Whether what is drawn from it comes back when it is released.
        projects: Those beside its own whose consumers may draw.
        note: For people; None for none.
    """

    until: datetime | None = None
    returns: bool = False
    projects: tuple[str, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class StoredHold:
    """A hold that exists, without what it holds.

    Attributes:
        project_id: Its own project.
        terms: Its terms.
        drawn: What is drawn from it and not returned.
    """

    project_id: str
    terms: HoldTerms
    drawn: Amounts

    def shown(self) -> dict[str, Any]:
        """Return the member `hold` by which clients see it."""
        until = self.terms.until
        return {
            "until": None if until is None else f"{until.isoformat(timespec='seconds')}Z",
            "returns": self.terms.returns,
            "projects": list(self.terms.projects),
            "note": self.terms.note,
            "drawn": self.drawn,
        }
