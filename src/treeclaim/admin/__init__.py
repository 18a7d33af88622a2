# SPDX-License-Identifier: Apache-2.0
"""The admin listener: liveness, readiness and metrics of the service."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Census:
    """The workers of a service, by their process ids.

    Attributes:
        answering: Workers that answer requests.
        silent: Workers that have stalled.
        reading: Answering workers whose last read of the inventory has just succeeded.
        is_reload_refused: Whether the last reload was refused.
    """

    answering: Sequence[int]
    silent: Sequence[int]
    reading: Sequence[int] = ()
    is_reload_refused: bool = False


TakeCensus = Callable[[], Census]
"""Returns the present workers."""


class FaultKind(Enum):
    """Certainty of a fault."""

    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True, slots=True)
class KeystoneFault:
    """The reason why tokens cannot be validated.

    Attributes:
        kind: REFUSED until the configuration, or Keystone, changes; UNREACHABLE for now; DOUBTFUL if validation may
            still work.
        summary: The public text, without hosts and users.
        detail: The text for operators.
    """

    kind: FaultKind
    summary: str
    detail: str
