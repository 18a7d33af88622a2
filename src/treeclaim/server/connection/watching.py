# SPDX-License-Identifier: Apache-2.0
"""An answer that continues with the news of a watch, as seen by its connection."""

from functools import partial

from treeclaim.server.http.exchange import Exchange
from treeclaim.server.sharing.watchers import Watch, Watcher, WatcherPlace, Watchers


class Watching:
    """A watch in its connection; all of it runs in the event loop."""

    def __init__(
        self,
        watchers: Watchers,
        watcher: Watcher,
        watch: Watch,
        place: WatcherPlace,
        exchange: Exchange,
    ) -> None:
        """Begin in a place that has been reserved."""
        self._watchers = watchers
        self._watcher = watcher
        self._watch = watch
        self._place = place
        self._exchange = exchange
        watch.wake = partial(watchers.wake, watcher)
        watchers.add(watcher)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self._watch.is_over

    @property
    def due(self) -> float:
        """The time of the next poll at the latest."""
        return self._watch.due

    def next_bytes(self, *, ends: bool) -> bytes:
        """Return what is to be sent now.

        Args:
            ends: True to end it, whatever may come.
        """
        piece = self._watch.finish() if ends else self._watch.take()
        self._place.count()
        data = self._exchange.framed(piece) if piece else b""
        return data + self._exchange.last_bytes if self.is_over else data

    def close(self) -> None:
        """Release the resources held for it."""
        self._watch.close()
        self._watchers.remove(self._watcher)
        self._place.give_back()
