# SPDX-License-Identifier: Apache-2.0
"""Tells the log which certificates expire, at once and then every day."""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress

from treeclaim.admin.certificates import Expiry

_LOG = logging.getLogger(__name__)

DAY_SECONDS = 24 * 3600.0


class ExpiryWarnings:
    """What the log is told of certificates, for as long as the service runs."""

    def __init__(self, seconds: float = DAY_SECONDS) -> None:
        """Begin with none; `seconds` is the time between two warnings."""
        self._expiries: Sequence[Expiry] = ()
        self._seconds = seconds
        self._are_new = asyncio.Event()

    def use(self, expiries: Sequence[Expiry]) -> None:
        """Tell of these from now on."""
        self._expiries = expiries
        self._are_new.set()

    async def tell(self) -> None:
        """Warn, and again after each such time, and when there are others."""
        while True:
            self._are_new.clear()
            now = time.time()
            for expiry in self._expiries:
                if (words := expiry.words(now)) is not None:
                    _LOG.warning(
                        "%s (%s): renew it, and send SIGHUP",
                        words[0].upper() + words[1:],
                        expiry.path,
                    )
            with suppress(TimeoutError):
                await asyncio.wait_for(self._are_new.wait(), self._seconds)
