# SPDX-License-Identifier: Apache-2.0
"""Processes that write at the same time, each with connections of its own."""

import multiprocessing

FRESH = multiprocessing.get_context("forkserver")
"""Starts processes that have nothing of this one: no threads, no connections, no locks.

All come from a server process that has imported the service once. To import it for each of them would
take longer than most of what they do.
"""

FRESH.set_forkserver_preload(["treeclaim.store", "treeclaim.replica"])
