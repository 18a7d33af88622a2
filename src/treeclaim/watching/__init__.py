# SPDX-License-Identifier: Apache-2.0
"""Watching: one reader of the change feed in each worker, for all watchers (decision 0015).

`texts` writes answers and events, and keeps the latest news, `channels` knows who watches what, `hub`
reads the feed, and `watches` are those who wait for news.
"""

from treeclaim.watching.hub import Hub
from treeclaim.watching.texts import Message
from treeclaim.watching.watches import EventStream, LongPoll, Watch

__all__ = ["EventStream", "Hub", "LongPoll", "Message", "Watch"]
