# SPDX-License-Identifier: Apache-2.0
"""The latest news, numbered, so that each watcher can resume."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from treeclaim.model.extension.news import News
from treeclaim.watching.texts import Message

_MOST_ENTRIES = 2_000
"""Times at which there was news: a quarter of an hour, if there is some at each look."""

_MOST_CHANGES = 20_000
"""Changes of providers in all entries: some 6 MB, which the event loop can fold in few milliseconds.
Whoever reads more slowly than that is told to come again, and then has all at once from the database."""

_MOST_FOLDED = 1_000
"""Changes in all that is kept for others who missed the same entries: some 350 kB."""


@dataclass(frozen=True, slots=True)
class Log:
    """An immutable sequence of entries; adding one makes a new log.

    So whoever has a log needs no lock.

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
        """Return this log without its first entry; who has not been told it has to begin again."""
        oldest, *rest = self.entries
        return Log(self.first + 1, tuple(rest), self.changes - len(oldest.news.changes))

    def shortened(self) -> "Log":
        """Return this log with its last entry alone, or empty if it has but one.

        Whoever has not been told the others has to begin again.
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
        known = self.folded.get(number)
        if known is None:
            known = _as_one(missed)
            kept = sum(len(message.news.changes) for message in self.folded.values())
            if kept + len(known.news.changes) <= _MOST_FOLDED:
                self.folded[number] = known
        return known


def _as_one(entries: Sequence[Message]) -> Message:
    return Message(News.as_one([entry.news for entry in entries]), entries[-1].cursor)
