# SPDX-License-Identifier: Apache-2.0
"""The admin listener: liveness, readiness and metrics of the service."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Census:
    """The process ids of a service's workers, by state.

    Attributes:
        silent: Workers that have stalled.
        reading: Answering workers that have just read the inventory.
        is_reload_refused: Whether the last reload was refused.
    """

    answering: Sequence[int]
    silent: Sequence[int]
    reading: Sequence[int] = ()
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
