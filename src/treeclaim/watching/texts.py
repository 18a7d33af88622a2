# SPDX-License-Identifier: Apache-2.0
"""News as clients read them, JSON documents and server-sent events, and the latest to resume from (page 99, section 4)."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from treeclaim.model.extension import cursor_text
from treeclaim.model.extension.news import News, ProviderChange
from treeclaim.model.parts import Part


class Message:
    """News, and its texts, which are made once for all that get it.

    Attributes:
        news: The news.
        cursor: The text of its cursor.
    """

    __slots__ = ("_document", "_event", "cursor", "news")

    def __init__(self, news: News, cursor: str | None = None) -> None:
        self.news = news
        self.cursor = cursor_text.written(news.cursor) if cursor is None else cursor
        self._document: bytes | None = None
        self._event: bytes | None = None

    def write(self) -> None:
        """Make the text now, in this thread, so that the event loop need not."""
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
def _names(parts: int) -> tuple[str, ...]:
    """Return the names of parts; there are not many sets of them."""
    return tuple(part.word for part in Part if part & parts)


_MOST_ENTRIES = 2_000
"""Times at which there was news: a quarter of an hour, if there is some at each look."""

_MOST_CHANGES = 20_000
"""Changes of providers in all entries: some 6 MB, which the event loop can fold in few milliseconds.
A watcher that reads more slowly is told to come again, and then gets everything at once from the database."""

_MOST_FOLDED = 1_000
"""Changes in all that is kept for others who missed the same entries: some 350 kB."""


@dataclass(frozen=True, slots=True)
class Log:
    """An immutable sequence of entries; adding one makes a new log.

    So readers of a log need no lock.

    Attributes:
        first: Number of the first entry that is kept.
        entries: What was new, each time.
        changes: Changes of providers in all entries.
        folded: What is new for those who missed some entries, by the number of the first of these.
    """

    first: int = 0
    entries: tuple[Message, ...] = ()
    changes: int = 0
    folded: dict[int, Message] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Return the number that the next entry will have."""
        return self.first + len(self.entries)

    def extended(self, entry: Message, needed: int) -> "Log":
        """Return this log with another entry, and without what nobody needs, or what is too much.

        Args:
            entry: What is new.
            needed: Number of the first entry that somebody has not been told.
        """
        entries = (*self.entries[max(needed - self.first, 0) :], entry)
        dropped = len(self.entries) + 1 - len(entries)
        changes = sum(len(kept.news.changes) for kept in entries)
        log = Log(self.first + dropped, entries, changes)
        while len(log.entries) > 1 and (
            log.changes > _MOST_CHANGES or len(log.entries) > _MOST_ENTRIES
        ):
            log = log.without_oldest()
        return log

    def without_oldest(self) -> "Log":
        """Return this log without its first entry; listeners that have not been told it have to begin again."""
        oldest, *later_entries = self.entries
        return Log(self.first + 1, tuple(later_entries), self.changes - len(oldest.news.changes))

    def shortened(self) -> "Log":
        """Return this log with only its last entry, or empty if it has only one.

        Listeners that have not been told the others have to begin again.
        """
        last = self.entries[1:][-1:]
        return Log(self.end - len(last), last, sum(len(entry.news.changes) for entry in last))

    def broken(self) -> "Log":
        """Return an empty log: every watcher has to begin again."""
        return Log(self.end + 1)

    def since(self, number: int) -> Message:
        """Return the news from an entry on, as one; there must be some."""
        missed = self.entries[number - self.first :]
        if len(missed) == 1:
            return missed[0]
        folded_message = self.folded.get(number)
        if folded_message is None:
            news = News.as_one([entry.news for entry in missed])
            folded_message = Message(news, missed[-1].cursor)
            kept = sum(len(message.news.changes) for message in self.folded.values())
            if kept + len(folded_message.news.changes) <= _MOST_FOLDED:
                self.folded[number] = folded_message
        return folded_message
