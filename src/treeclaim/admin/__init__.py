# SPDX-License-Identifier: Apache-2.0
"""The admin listener: liveness, readiness and metrics of the service."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Census:
    """The process ids of a service's workers, by state.

    Attributes:
        silent_pids: Workers that have stalled.
        reading_pids: Answering workers that have just read the inventory.
        is_reload_refused: Whether the last reload was refused.
    """

    answering_pids: Sequence[int]
    silent_pids: Sequence[int]
    reading_pids: Sequence[int] = ()
    is_reload_refused: bool = False


TakeCensus = Callable[[], Census]


class FaultKind(Enum):
    """Kinds of faults of Keystone; after a `DOUBTFUL` fault, validation may still work."""

    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True, slots=True)
class KeystoneFault:
    """The reason why tokens cannot be validated.

    Attributes:
        summary: The public text, without hosts and users.
        detail: The text for operators.
    """

    kind: FaultKind
    summary: str
    detail: str
