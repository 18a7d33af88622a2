# SPDX-License-Identifier: Apache-2.0
"""How long a search may take.

Combining is a search, and a question can be made for which it takes longer than anybody waits.
While it goes on, the worker answers nobody else.
"""

import time
from collections.abc import Callable

from treeclaim.model.errors import SearchGivenUpError


class Deadline:
    """The moment at which a search is given up."""

    def __init__(
        self, seconds: float | None, interrupted: Callable[[], None] | None = None
    ) -> None:
        """Begin now.

        Args:
            seconds: How long it may take; None for as long as it likes.
            interrupted: Called at each check; ends the search by raising.
        """
        self._seconds = seconds
        self._interrupted = interrupted
        self.begin_again()

    def begin_again(self) -> None:
        """Let the time begin now, as something was found and the caller wants more."""
        self._at = None if self._seconds is None else time.monotonic() + self._seconds

    def check(self) -> None:
        """Go on if there is time.

        Raises:
            SearchGivenUpError: if there is none left.
        """
        if self._interrupted is not None:
            self._interrupted()
        if self._at is not None and time.monotonic() > self._at:
            raise SearchGivenUpError(self._seconds or 0)
