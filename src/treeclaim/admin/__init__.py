# SPDX-License-Identifier: Apache-2.0
"""The admin listener: is the service alive, is it ready, and what does it count?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Census:
    """The workers of a service, by their process ids.

    Attributes:
        answering: Those that answer requests.
        silent: Those that did, but have stalled.
    """

    answering: Sequence[int]
    silent: Sequence[int]


TakeCensus = Callable[[], Census | None]
"""Asks the workers, for a bounded time; None if there is no answer."""
