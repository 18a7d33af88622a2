# SPDX-License-Identifier: Apache-2.0
"""Watches of changes: in each worker, one hub reads the change feed for all clients (decision 0015).

The hub appends news to the `change_log`, from which each of the `watches` selects the changes of its trees.
"""

from treeclaim.watching.change_log import Message
from treeclaim.watching.watches import EventStream, Hub, LongPoll, Watch

__all__ = ["EventStream", "Hub", "LongPoll", "Message", "Watch"]
