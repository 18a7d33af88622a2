# SPDX-License-Identifier: Apache-2.0
"""What stores do besides, in threads of their own."""

import threading

from treeclaim.store.store import PRUNING_THREAD


def wait_for_pruning():
    """Wait until no store of this process prunes the feed."""
    for thread in threading.enumerate():
        if thread.name == PRUNING_THREAD:
            thread.join(timeout=60)
            assert not thread.is_alive()
