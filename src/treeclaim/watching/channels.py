# SPDX-License-Identifier: Apache-2.0
"""An index from providers and trees to the watchers of their changes.

Watchers of the same providers share a channel, which has their news. So the cost of news depends on what changed,
and on how many different channels are concerned: neither the watchers of a channel nor
watched trees that have not changed are looked at to find that out.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from treeclaim.model.errors import OverloadedError
from treeclaim.model.extension.news import News, ProviderChange
from treeclaim.watching.texts import Log, Message

_LOG = logging.getLogger(__name__)

MOST_NAMED = 100_000
"""Different providers that all watchers of a worker may name: some 30 MB."""

NAME_BYTES = 300
"""Bytes that one of them takes: its uuid, that of its root, what is known of it, and its place in the index;
the process's memory was measured."""

REFERENCE_BYTES = 24
"""For each provider of each channel: their places in each other's lists, with what these leave behind
as they grow."""


class Listener(Protocol):
    """A listener that waits for the news of a channel.

    Attributes:
        wake: Called from another thread when there is some; None before it can be.
        next: Number of the first entry of the channel's log that it has not been told.
        reached: The hub's cursor when it began to listen, as text.
    """

    wake: Callable[[], object] | None
    next: int
    reached: str


class Named:
    """A provider by which a tree is named.

    Attributes:
        uuid: Its uuid.
        root: Uuid of its root, None while it does not exist.
        channels: Those that name it.
    """

    __slots__ = ("channels", "root", "uuid")

    def __init__(self, uuid: str, root: str | None) -> None:
        self.uuid = uuid
        # The text that is kept anyway.
        self.root = uuid if root == uuid else root
        self.channels: tuple[Channel, ...] = ()


class Channel:
    """The news for all that watch the same.

    Attributes:
        named: The providers whose trees they watch; None for all.
        log: The news; it is replaced, never changed, so no lock is needed to read it.
        listeners: Those that hear them.
        key: Stands for what they watch.
    """

    __slots__ = ("key", "listeners", "log", "named")

    def __init__(self, key: bytes, named: tuple[Named, ...] | None) -> None:
        self.key = key
        self.named = named
        self.log = Log()
        self.listeners: dict[Listener, None] = {}

    def tell(self, message: Message) -> None:
        """Add news to the log."""
        needed = min((listener.next for listener in list(self.listeners)), default=self.log.end)
        self.log = self.log.extended(message, needed)

    def wake(self) -> None:
        """Wake all listeners."""
        for listener in list(self.listeners):
            wake = listener.wake
            try:
                if wake is not None:
                    wake()
            except Exception:  # noqa: BLE001 - it is the trouble of this one alone
                # It hears of the news when it looks by itself; the others hear of it now.
                _LOG.exception("A watcher could not be woken")


class Index:
    """All channels of a worker, by the providers and trees that they watch; not thread-safe.

    Attributes:
        everything: The channel of those who watch all trees.
    """

    def __init__(self) -> None:
        self.everything = Channel(b"", None)
        self._channels: dict[bytes, Channel] = {}
        self._named: dict[str, Named] = {}
        self._below: dict[str, list[Named]] = {}
        """Named providers that are not roots, by their roots."""

    def __len__(self) -> int:
        """Return how many different providers are named."""
        return len(self._named)

    @property
    def channels(self) -> list[Channel]:
        """Return all channels."""
        return [self.everything, *self._channels.values()]

    def channel(self, roots: Mapping[str, str | None]) -> tuple[Channel, int]:
        """Return the channel of some trees, and the bytes that it took to make it, if it was made.

        Args:
            roots: The root of each provider by which a tree is named; None for unknown ones.

        Raises:
            OverloadedError: if too many providers would be named.
        """
        key = hashlib.sha256("\n".join(sorted(roots)).encode()).digest()
        cached_channel = self._channels.get(key)
        if cached_channel is not None:
            return cached_channel, 0
        new = len(roots.keys() - self._named.keys())
        if len(self._named) + new > MOST_NAMED:
            raise OverloadedError("place for trees to watch")
        channel = Channel(key, tuple(self._named_as(*pair) for pair in roots.items()))
        for named in channel.named or ():
            named.channels += (channel,)
        self._channels[key] = channel
        return channel, REFERENCE_BYTES * len(roots) + NAME_BYTES * new

    def _named_as(self, uuid: str, root: str | None) -> Named:
        named = self._named.get(uuid)
        if named is None:
            named = self._named[uuid] = Named(uuid, root)
            self._put_below(named)
        return named

    def discard(self, channel: Channel) -> None:
        """Forget a channel that has no listeners, if that has not been done."""
        if self._channels.pop(channel.key, None) is None:
            return
        for named in channel.named or ():
            named.channels = tuple(other for other in named.channels if other is not channel)
            if not named.channels:
                self._take_from_below(named)
                del self._named[named.uuid]

    def concerned(self, uuid: str, change: ProviderChange) -> AbstractSet[Channel]:
        """Return the channels that a change is told to, beside that of everything."""
        if change.trees is None:
            return set(self._channels.values())
        channels: set[Channel] = set()
        for tree in {uuid, *change.trees}:
            named = self._named.get(tree)
            if named is not None:
                channels.update(named.channels)
            for below in self._below.get(tree, ()):
                channels.update(below.channels)
        return channels

    def moves(self, news: News) -> dict[str, AbstractSet[str]]:
        """Return the named providers that have another tree now, with the former and the new one."""
        trees: dict[str, AbstractSet[str]] = {}
        for uuid, change in news.changes.items():
            named = self._named.get(uuid)
            if named is not None and named.root != change.root:
                trees[uuid] = {tree for tree in (named.root, change.root) if tree is not None}
        return trees

    def divided(
        self,
        news: News,
        moves: Mapping[str, AbstractSet[str]],
        members: Mapping[str, ProviderChange],
    ) -> dict[Channel, News]:
        """Divide news among the channels that are concerned, beside that of everything.

        Args:
            news: All.
            moves: The moves of named providers.
            members: All providers of the trees that these moves are about.
        """
        by_channel: dict[Channel, dict[str, ProviderChange]] = {}
        for uuid, change in news.changes.items():
            for channel in self.concerned(uuid, change):
                by_channel.setdefault(channel, {})[uuid] = change
        change_by_uuid = news.beside(members).changes if moves else {}
        by_tree: dict[str | None, list[str]] = {}
        for uuid, member in members.items():
            by_tree.setdefault(member.root, []).append(uuid)
        for uuid, trees in moves.items():
            those = {
                member: change_by_uuid[member]
                for tree in trees
                for member in by_tree.get(tree, ())
            }
            for channel in self._named[uuid].channels:
                by_channel.setdefault(channel, {}).update(those)
        if news.catalogue:
            for channel in self._channels.values():
                by_channel.setdefault(channel, {})
        return {
            channel: News(news.cursor, changes, news.catalogue)
            for channel, changes in by_channel.items()
        }

    def follow(self, news: News, moved: Iterable[str]) -> None:
        """Note where named providers are now."""
        for uuid in moved:
            named = self._named[uuid]
            self._take_from_below(named)
            root = news.changes[uuid].root
            named.root = uuid if root == uuid else root
            self._put_below(named)

    def _put_below(self, named: Named) -> None:
        if named.root is not None and named.root != named.uuid:
            self._below.setdefault(named.root, []).append(named)

    def _take_from_below(self, named: Named) -> None:
        if named.root is not None and named.root != named.uuid:
            remaining_entries = [
                other for other in self._below.pop(named.root) if other is not named
            ]
            if remaining_entries:
                self._below[named.root] = remaining_entries
