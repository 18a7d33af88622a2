# SPDX-License-Identifier: Apache-2.0
"""Upkeep of stores in threads of their own, and the time that it follows."""

import threading
from datetime import UTC, datetime

from treeclaim.store.store import PRUNING_THREAD


def wait_for_pruning():
    """Wait until no store of this process prunes the feed."""
    for thread in threading.enumerate():
        if thread.name == PRUNING_THREAD:
            thread.join(timeout=60)
            assert not thread.is_alive()


def utc_now():
    """The present time as the tables hold it: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)
