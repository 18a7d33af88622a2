# SPDX-License-Identifier: Apache-2.0
"""How long a search may take.

Combining is a search, and a question can be made for which it takes longer than anybody waits.
While it goes on, the worker answers nobody else.
"""

import time

from treeclaim.model.errors import SearchGivenUpError


class Deadline:
    """The moment at which a search is given up."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self.begin_again()

    def begin_again(self) -> None:
        """Let the time begin now, as something was found and the caller wants more."""
        self._at = None if self._seconds is None else time.monotonic() + self._seconds

    def check(self) -> None:
        """Go on if there is time.

        Raises:
            SearchGivenUpError: if there is none left.
        """
        if self._at is not None and time.monotonic() > self._at:
            raise SearchGivenUpError(self._seconds or 0)
