# SPDX-License-Identifier: Apache-2.0
"""Watching: one reader of the change feed in each worker, for all watches (decision 0015).

The hub reads the feed into the `change_log`, from which each of the `watches` selects the changes of its trees.
"""

from treeclaim.watching.change_log import Message
from treeclaim.watching.watches import EventStream, Hub, LongPoll, Watch

__all__ = ["EventStream", "Hub", "LongPoll", "Message", "Watch"]
