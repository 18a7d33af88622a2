# SPDX-License-Identifier: Apache-2.0
"""The admin listener: is the service alive, is it ready, and what does it count?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Census:
    """The workers of a service, by their process ids.

    Attributes:
        answering: Those that answer requests.
        silent: Those that did, but have stalled.
        reading: Those of the former that have read the inventory just now.
        is_reload_refused: Whether the last reload was refused.
    """

    answering: Sequence[int]
    silent: Sequence[int]
    reading: Sequence[int] = ()
    is_reload_refused: bool = False


TakeCensus = Callable[[], Census]
"""Returns the workers as they are now."""


class FaultKind(Enum):
    """Certainty of a fault."""

    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True, slots=True)
class KeystoneFault:
    """Why tokens cannot be validated.

    Attributes:
        kind: REFUSED until somebody changes the configuration, or Keystone; UNREACHABLE for now; DOUBTFUL
            where it may yet work.
        summary: For anybody; names no host and no user.
        detail: For operators.
    """

    kind: FaultKind
    summary: str
    detail: str
