# SPDX-License-Identifier: Apache-2.0
"""News for watchers: which providers changed, and which parts (contract page 99, section 4)."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from treeclaim.model.changes import Cursor, UsageChange
from treeclaim.model.parts import EVERYTHING, Part


@dataclass(frozen=True, slots=True)
class ProviderEffect:
    """The effect of one transaction on a provider.

    Attributes:
        parts: The parts that it changed, perhaps too many.
        uuid: UUID of a provider that it deleted; None for an existing provider.
        tree: Uuid of its former root, if that has changed.
        usage: Changes by claims, if nothing else was changed; else None.
    """

    parts: Part
    uuid: str | None = None
    tree: str | None = None
    usage: UsageChange | None = None


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """The change of a provider.

    Attributes:
        generation: The present one; None if the provider is gone.
        parts: The changed parts, perhaps too many.
        trees: Uuids of the former and present roots.
        root: Uuid of the present root; None if the provider is gone.
    """

    generation: int | None
    parts: Part
    trees: AbstractSet[str]
    root: str | None

    def after(self, earlier: "ProviderChange") -> "ProviderChange":
        """Return the two changes of one provider as one."""
        return ProviderChange(
            self.generation, self.parts | earlier.parts, self.trees | earlier.trees, self.root
        )

    @property
    def may_be_a_move(self) -> bool:
        """Return whether it may be a move from another tree, a creation, or a deletion."""
        return self.parts == EVERYTHING or self.trees != {self.root}


@dataclass(frozen=True, slots=True)
class News:
    """The changes committed between two cursors; each transaction whole or not at all.

    Attributes:
        cursor: The later one.
        changes: By uuid of the provider.
        catalogue: Whether traits or resource classes came, went or were renamed.
    """

    cursor: Cursor
    changes: Mapping[str, ProviderChange]
    catalogue: bool

    @property
    def is_empty(self) -> bool:
        """Return whether there is no news."""
        return not self.changes and not self.catalogue

    @classmethod
    def as_one(cls, several: Sequence["News"]) -> "News":
        """Return news that follow each other as one; there must be some."""
        folded = dict(several[0].changes)
        for news in several[1:]:
            for uuid, change in news.changes.items():
                earlier = folded.get(uuid)
                folded[uuid] = change if earlier is None else change.after(earlier)
        return cls(several[-1].cursor, folded, any(news.catalogue for news in several))

    def within(self, roots: Mapping[str, str | None]) -> "News":
        """Return the changes in some trees.

        A provider that stayed in its tree while the root was replaced has not changed:
        `treeclaim.store.feed.news` adds it.

        Args:
            roots: The UUID of the root of each provider's tree, by the UUID of the provider; None for
                a provider that does not exist.
        """
        tree_uuids = set(roots).union(root for root in roots.values() if root is not None)
        for named in roots.keys() & self.changes.keys():
            tree_uuids |= self.changes[named].trees
        kept = {
            uuid: change
            for uuid, change in self.changes.items()
            if uuid in tree_uuids or not tree_uuids.isdisjoint(change.trees)
        }
        # Callers compare by identity to find that nothing was dropped.
        return self if len(kept) == len(self.changes) else News(self.cursor, kept, self.catalogue)

    def beside(self, members: Mapping[str, ProviderChange]) -> "News":
        """Return this with providers for which another tree became theirs, or the other way round."""
        changes = dict(self.changes)
        for uuid, member in members.items():
            change = changes.get(uuid)
            changes[uuid] = member if change is None else change.after(member)
        return News(self.cursor, changes, self.catalogue)
