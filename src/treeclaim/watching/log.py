# SPDX-License-Identifier: Apache-2.0
"""The latest news, numbered, so that each watcher can resume."""

from dataclasses import dataclass, field

from treeclaim.model.extension.news import News

_MOST_ENTRIES = 2_000
"""Times at which there was news: a quarter of an hour, if there is some at each look."""

_MOST_CHANGES = 100_000
"""Changes of providers in all entries: some 30 MB. Whoever reads more slowly than that is told to
come again, and then has all at once from the database."""


@dataclass(frozen=True, slots=True)
class Log:
    """An immutable sequence of entries; adding one makes a new log.

    So whoever has a log needs no lock.

    Attributes:
        first: Number of the first entry that is kept.
        entries: What was new, each time.
        written: What is new for those who come from an entry on, and the event that says so: all
            who are as far get the same bytes.
    """

    first: int = 0
    entries: tuple[News, ...] = ()
    written: dict[int, tuple[News, bytes]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Return the number that the next entry will have."""
        return self.first + len(self.entries)

    def extended(self, news: News) -> "Log":
        """Return this log with another entry, and without those that are too old."""
        entries = (*self.entries, news)
        changes = sum(len(entry.changes) for entry in entries)
        drop = 0
        while drop < len(entries) - 1 and (
            changes > _MOST_CHANGES or len(entries) - drop > _MOST_ENTRIES
        ):
            changes -= len(entries[drop].changes)
            drop += 1
        return Log(self.first + drop, entries[drop:])

    def broken(self) -> "Log":
        """Return an empty log: every watcher has to begin again."""
        return Log(self.end + 1)

    def since(self, number: int) -> News:
        """Return the news from an entry on, merged; there must be some."""
        entries = self.entries[number - self.first :]
        folded = entries[0]
        for entry in entries[1:]:
            folded = entry.after(folded)
        return folded
