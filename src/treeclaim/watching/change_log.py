# SPDX-License-Identifier: Apache-2.0
"""The log of the latest changes, and the messages for clients (contract page 99, section 4)."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import orjson

from treeclaim.model.changes import News, ProviderChange, write_cursor
from treeclaim.model.parts import Part


@dataclass(frozen=True)
class Message:
    """News and the cursor after it, serialized once for all watches."""

    news: News
    cursor: str

    @classmethod
    def of(cls, news: News) -> "Message":
        """Return the message of news with its cursor."""
        return cls(news, write_cursor(news.cursor))

    @cached_property
    def document(self) -> bytes:
        """The news as JSON."""
        changes = [_change(uuid, change) for uuid, change in self.news.changes.items()]
        return orjson.dumps(
            {"changes": changes, "catalogue": self.news.catalogue, "cursor": self.cursor}
        )

    @cached_property
    def event(self) -> bytes:
        """The news as a server-sent event."""
        cursor = self.cursor.encode("ascii")
        return b"id: %b\nevent: changes\ndata: %b\n\n" % (cursor, self.document)


def empty_document(cursor: str) -> bytes:
    """Return the JSON of a response without news."""
    return orjson.dumps({"changes": [], "catalogue": False, "cursor": cursor})


def comment(cursor: str | None) -> bytes:
    """Return a comment that keeps the connection alive.

    A cursor moves the client past changes of other trees. Without it, a quiet stream falls behind the feed.
    """
    if cursor is None:
        return b":\n\n"
    return b":\nid: %b\n\n" % cursor.encode("ascii")


def _change(uuid: str, change: ProviderChange) -> dict[str, Any]:
    if change.generation is None:
        return {"uuid": uuid, "deleted": True}
    return {"uuid": uuid, "generation": change.generation, "what": _part_names(int(change.parts))}


@lru_cache(maxsize=64)
def _part_names(parts: int) -> tuple[str, ...]:
    return tuple(part.word for part in Part if part & parts)


@dataclass(frozen=True, slots=True)
class MovedNews:
    """The news for a watch with providers that may have moved, and the present roots of its providers."""

    news: News
    roots: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """The news of one poll of the feed.

    Attributes:
        message: The news for watches of everything.
        moved: The news for watches with providers that may have moved, by watch.
        touched: UUIDs of the changed providers and their present and former roots; None if any tree may be affected.
    """

    message: Message
    moved: Mapping[Any, MovedNews]
    touched: AbstractSet[str] | None

    @classmethod
    def of(cls, news: News, moved: Mapping[Any, MovedNews]) -> "LogEntry":
        """Return the entry for news."""
        trees = (change.trees for change in news.changes.values())
        touched = None if news.catalogue else set(news.changes).union(*trees)
        return cls(Message.of(news), moved, touched)


_MOST_ENTRIES = 2_000
"""Most entries of a log: a quarter of an hour, if each poll returns news."""

_MOST_CHANGES = 20_000
"""Most changes of providers in all entries: about 6 MB, which the event loop can join in a few milliseconds. A slower
watch ends, and its client then reads all changes from the database."""


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """An immutable sequence of entries; the hub replaces it, so readers need no lock.

    Attributes:
        cursor: The cursor of the last poll, as text.
        first: Number of the first entry in the log.
        changes: Number of changes of providers in all entries.
    """

    cursor: str = ""
    first: int = 0
    entries: tuple[LogEntry, ...] = ()
    changes: int = 0

    @property
    def end(self) -> int:
        """The number of the next entry."""
        return self.first + len(self.entries)

    def with_cursor(self, cursor: str) -> "ChangeLog":
        """Return the log with a later cursor, after a poll without news."""
        return replace(self, cursor=cursor)

    def extended(self, entry: LogEntry, needed: int) -> "ChangeLog":
        """Return the log with a new entry, without its oldest entries.

        It drops the entries before `needed`, the first number that a watch has not read, and those beyond the bounds.
        """
        entries = (*self.entries[max(needed - self.first, 0) :], entry)
        first = self.end + 1 - len(entries)
        changes = sum(len(each.message.news.changes) for each in entries)
        while len(entries) > 1 and (changes > _MOST_CHANGES or len(entries) > _MOST_ENTRIES):
            changes -= len(entries[0].message.news.changes)
            first, entries = first + 1, entries[1:]
        return ChangeLog(entry.message.cursor, first, entries, changes)

    def broken(self, cursor: str) -> "ChangeLog":
        """Return an empty log after unknown changes, which ends every watch."""
        return ChangeLog(cursor, self.end + 1)

    def since(self, number: int) -> tuple[LogEntry, ...]:
        """Return the entries from a number on."""
        return self.entries[number - self.first :]
