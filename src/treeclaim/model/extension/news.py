# SPDX-License-Identifier: Apache-2.0
"""News for watchers: which providers changed, and which parts (contract page 99, section 4)."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import IntFlag

from treeclaim.model.changes import Cursor, UsageChange


class Part(IntFlag):
    """The parts of a provider that change separately; the numbers are stored in the database."""

    PROVIDER = 1
    """Name, parent, root."""
    INVENTORIES = 2
    TRAITS = 4
    AGGREGATES = 8
    ALLOCATIONS = 16
    """And so its usages."""


EVERYTHING = Part(31)
"""All parts: of a new provider, and where it is not known which changed."""


@dataclass(frozen=True, slots=True)
class Touched:
    """The effect of one transaction on a provider.

    Attributes:
        parts: What it changed, at least.
        uuid: Of a provider that it deleted; None for one that it left.
        tree: Uuid of the root that it had before, where it has that one no more.
        usage: What claims changed, if nothing else was changed; else None.
    """

    parts: Part
    uuid: str | None = None
    tree: str | None = None
    usage: UsageChange | None = None


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """The change of a provider.

    Attributes:
        generation: As it is now; None if the provider is gone.
        parts: What changed, at least.
        trees: Uuids of the roots that it has and had; None where that is not known.
    """

    generation: int | None
    parts: Part
    trees: AbstractSet[str] | None

    def after(self, earlier: "ProviderChange") -> "ProviderChange":
        """Return the two changes of one provider as one."""
        unknown = self.trees is None or earlier.trees is None
        return ProviderChange(
            self.generation,
            self.parts | earlier.parts,
            None if unknown else (self.trees or frozenset()) | (earlier.trees or frozenset()),
        )


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
        """Tell whether there is no news."""
        return not self.changes and not self.catalogue

    def after(self, earlier: "News") -> "News":
        """Return earlier news and this as one."""
        folded = dict(earlier.changes)
        for uuid, change in self.changes.items():
            known = folded.get(uuid)
            folded[uuid] = change if known is None else change.after(known)
        return News(self.cursor, folded, self.catalogue or earlier.catalogue)

    def within(self, roots: Mapping[str, AbstractSet[str]]) -> "News":
        """Return the part about some trees.

        Args:
            roots: The trees of each provider by which they were named.
        """
        wanted = set(roots).union(*roots.values())
        for named in roots:
            moved = self.changes.get(named)
            if moved is not None and moved.trees is not None:
                wanted |= moved.trees
        kept = {
            uuid: change
            for uuid, change in self.changes.items()
            if change.trees is None or uuid in wanted or not wanted.isdisjoint(change.trees)
        }
        return News(self.cursor, kept, self.catalogue)
