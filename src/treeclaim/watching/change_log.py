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
        moved_news: The news for watches with providers that may have moved, by watch.
        touched_uuids: UUIDs of the changed providers and their present and former roots; None if any tree may be affected.
    """

    message: Message
    moved_news: Mapping[Any, MovedNews]
    touched_uuids: AbstractSet[str] | None

    @classmethod
    def of(cls, news: News, moved_news: Mapping[Any, MovedNews]) -> "LogEntry":
        """Return the entry for news."""
        trees = (change.trees for change in news.changes.values())
        touched_uuids = None if news.catalogue else set(news.changes).union(*trees)
        return cls(Message.of(news), moved_news, touched_uuids)


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
        first_number: Number of the first entry in the log.
        changes: Number of changes of providers in all entries.
    """

    cursor: str = ""
    first_number: int = 0
    entries: tuple[LogEntry, ...] = ()
    changes: int = 0

    @property
    def end(self) -> int:
        """The number of the next entry."""
        return self.first_number + len(self.entries)

    def with_cursor(self, cursor: str) -> "ChangeLog":
        """Return the log with a later cursor, after a poll without news."""
        return replace(self, cursor=cursor)

    def with_entry(self, entry: LogEntry, needed_number: int) -> "ChangeLog":
        """Return the log with a new entry, without its oldest entries.

        It drops the entries before `needed_number`, the first number that a watch has not read, and those beyond the bounds.
        """
        entries = (*self.entries[max(needed_number - self.first_number, 0) :], entry)
        first_number = self.end + 1 - len(entries)
        changes = sum(len(each.message.news.changes) for each in entries)
        while len(entries) > 1 and (changes > _MOST_CHANGES or len(entries) > _MOST_ENTRIES):
            changes -= len(entries[0].message.news.changes)
            first_number, entries = first_number + 1, entries[1:]
        return ChangeLog(entry.message.cursor, first_number, entries, changes)

    def without_entries(self, cursor: str) -> "ChangeLog":
        """Return an empty log after unknown changes, which ends every watch."""
        return ChangeLog(cursor, self.end + 1)

    def list_since(self, number: int) -> tuple[LogEntry, ...]:
        """Return the entries from a number on."""
        return self.entries[number - self.first_number :]
