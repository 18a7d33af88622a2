# SPDX-License-Identifier: Apache-2.0
"""Holds: consumers that keep resources for claims to come (contract page 100)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

HOLD_TYPE = "TREECLAIM_HOLD"
"""Consumer type of holds."""

MOST_PROJECTS = 64
"""Projects beside a hold's own whose consumers may draw from it."""

LONGEST_NOTE = 255
"""Characters of a note."""

MOST_SOURCES = 64
"""Holds that one consumer of a write, or one query, may draw from."""

Amounts = Mapping[str, Mapping[str, int]]
"""Amounts by provider uuid and resource class."""


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
