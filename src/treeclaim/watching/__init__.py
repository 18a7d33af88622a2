# SPDX-License-Identifier: Apache-2.0
"""Watching: one reader of the change feed in each worker, for all watches (decision 0015).

`hub` reads the feed into the `change_log`, and each of the `watches` selects the changes of its trees.
"""

from treeclaim.watching.change_log import Message
from treeclaim.watching.hub import Hub
from treeclaim.watching.watches import EventStream, LongPoll, Watch

__all__ = ["EventStream", "Hub", "LongPoll", "Message", "Watch"]
