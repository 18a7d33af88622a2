# SPDX-License-Identifier: Apache-2.0
"""News as clients read them: JSON documents and server-sent events (contract page 99, section 4)."""

from functools import lru_cache
from typing import Any

import orjson

from treeclaim.model.extension import cursor_text
from treeclaim.model.extension.news import News, ProviderChange
from treeclaim.model.parts import EVERYTHING, Part


class Message:
    """News, and the texts that tell it, which are made once for all who get it.

    Attributes:
        news: What is told.
        cursor: The text of its cursor.
    """

    __slots__ = ("_document", "_earlier", "_event", "cursor", "news")

    def __init__(self, news: News, cursor: str | None = None) -> None:
        self.news = news
        self.cursor = cursor_text.written(news.cursor) if cursor is None else cursor
        self._document: bytes | None = None
        self._event: bytes | None = None
        self._earlier: Message | None = None

    def of(self, known: Part) -> "Message":
        """Return what is told to clients who know some parts: all of them, or those of before 1.4."""
        if known == EVERYTHING:
            return self
        if self._earlier is None:
            self._earlier = Message(self.news.of(known), self.cursor)
        return self._earlier

    def write(self) -> None:
        """Make the text now, by this thread, so that the event loop need not."""
        self._document = self.document

    @property
    def document(self) -> bytes:
        """Return the news as JSON."""
        if self._document is None:
            changes = [_change(uuid, change) for uuid, change in self.news.changes.items()]
            self._document = orjson.dumps(
                {"changes": changes, "catalogue": self.news.catalogue, "cursor": self.cursor}
            )
        return self._document

    @property
    def event(self) -> bytes:
        """Return the news as a server-sent event."""
        if self._event is None:
            cursor = self.cursor.encode("ascii")
            self._event = b"id: %b\nevent: changes\ndata: %b\n\n" % (cursor, self.document)
        return self._event


def nothing_since(cursor: str) -> bytes:
    """Write the answer without news since a cursor."""
    return orjson.dumps({"changes": [], "catalogue": False, "cursor": cursor})


def comment(cursor: str | None) -> bytes:
    """Write a comment that keeps the connection alive.

    Args:
        cursor: Behind what was passed over since the last event, which nobody needs to be told; it
            is sent, so that a stream that has little to tell does not fall behind.
    """
    if cursor is None:
        return b":\n\n"
    return b":\nid: %b\n\n" % cursor.encode("ascii")


def _change(uuid: str, change: ProviderChange) -> dict[str, Any]:
    if change.generation is None:
        return {"uuid": uuid, "deleted": True}
    return {"uuid": uuid, "generation": change.generation, "what": _names(int(change.parts))}


@lru_cache(maxsize=64)
def _names(parts: int) -> list[str]:
    """Return the names of parts; there are not many sets of them."""
    return [part.word for part in Part if part & parts]
