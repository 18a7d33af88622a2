# SPDX-License-Identifier: Apache-2.0
"""A request that waits for somebody else without a thread.

The application arranges to be told (`Parking.go_on`), and leaves its thread by `Parking.leave`. When
it is told, it is called again with the same request, and finds in `kept` what it has put there.
"""

from collections.abc import Callable
from typing import Any, NoReturn

PARKING_KEY = "treeclaim.parking"
"""The key of the WSGI environment under which the application finds its `Parking`."""


class ParkedError(Exception):
    """The application has left, and will be called again."""


class Parking:
    """The place of one request.

    Attributes:
        go_on: Has the application called again, soon, in some thread; once for each `leave`, and
            perhaps before it.
        kept: What it has found out, by whatever keys.
    """

    __slots__ = ("go_on", "kept")

    def __init__(self, go_on: Callable[[], None]) -> None:
        self.go_on = go_on
        self.kept: dict[Any, Any] = {}

    def leave(self) -> NoReturn:
        """End this call of the application; nothing of an answer was begun."""
        raise ParkedError
