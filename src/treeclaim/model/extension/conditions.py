# SPDX-License-Identifier: Apache-2.0
"""Conditions of providers, which stop new allocations (contract page 102, section 3)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any

MOST_CONDITIONS = 16
"""Conditions that one provider may have."""

MOST_TOLERATED = 64
"""Keys that one consumer of a write may tolerate."""

LONGEST_REASON = 255
"""Characters of a reason."""

KEY = "[A-Z][A-Z0-9_]{0,62}"
"""The form of a key, as a regular expression."""


class Effect(IntEnum):
    """Effects of a condition; the numbers are stored."""

    NO_NEW = 1
    """The provider and its descendants get no new allocations."""
    LEAVE = 2
    """Like `no_new`; in addition, consumers that are still there are reported."""

    @property
    def word(self) -> str:
        """Return the effect as clients have it."""
        return self.name.lower()


EFFECTS: Mapping[str, Effect] = {effect.word: effect for effect in Effect}
"""Effects by the word that clients use."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a provider.

    Attributes:
        key: Unique for its provider.
        effect: The effect.
        until: When it is gone, by the database's clock: naive UTC in whole seconds; None for never.
        on_use: Whether it begins with the first write that uses more there.
        began: Whether it is in effect.
        reason: For people.
    """

    key: str
    effect: Effect
    until: datetime | None = None
    on_use: bool = False
    began: bool = True
    reason: str = ""

    def __lt__(self, other: "Condition") -> bool:
        """Order by key, then by all else, so that lists of conditions have one order."""
        return self._rank < other._rank

    @property
    def _rank(self) -> tuple[Any, ...]:
        return self.key, self.effect, str(self.until), self.on_use, self.began, self.reason

    def counts(self, tolerated: Collection[str]) -> bool:
        """Return whether it affects consumers that tolerate some keys."""
        return self.began and self.key not in tolerated

    def has_ended(self, now: datetime) -> bool:
        """Return whether it has expired, given the time of the database's clock."""
        return self.until is not None and self.until <= now

    def shown(self) -> dict[str, Any]:
        """Return it as clients see it, without its key."""
        until = self.until
        return {
            "effect": self.effect.word,
            "until": None if until is None else f"{until.isoformat(timespec='seconds')}Z",
            "reason": self.reason,
            "on_use": self.on_use,
            "began": self.began,
        }


def shown_by_key(conditions: Iterable[Condition]) -> dict[str, dict[str, Any]]:
    """Return the conditions of a provider as clients see them."""
    return {condition.key: condition.shown() for condition in conditions}
