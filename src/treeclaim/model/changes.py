# SPDX-License-Identifier: Apache-2.0
"""Changes of the inventory since a cursor: records for a Forest, and news for watchers.

News are the changed providers with their changed parts (contract page 99, section 4).
"""

import base64
import binascii
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from treeclaim.model.names import CUSTOM_PREFIX
from treeclaim.model.parts import EVERYTHING, Part
from treeclaim.model.provider import ProviderRecord

if TYPE_CHECKING:
    # numpy takes 14 MB, which processes without a Forest save.
    from treeclaim.model.whole import WholeInventory


class Cursor(NamedTuple):
    """A reader's position in the change feed (decision 0002): the last commit of each shard, and its token."""

    positions: tuple[int, ...]
    tokens: tuple[int, ...]


LONGEST_CURSOR = 4_096
"""Most characters of the text of a cursor (contract page 99, section 4)."""

_CURSOR_FORM = 4
"""The first byte of a text: the number of the format."""

_NUMBER = struct.Struct(">Q")


class UnreadableCursorError(ValueError):
    """A text is not a cursor of this program."""


def write_cursor(cursor: Cursor) -> str:
    """Return the URL-safe text of a cursor: the format, all positions, all tokens."""
    numbers = [_NUMBER.pack(number) for number in (*cursor.positions, *cursor.tokens)]
    content = bytes([_CURSOR_FORM]) + b"".join(numbers)
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def read_cursor(text: str) -> Cursor:
    """Parse a text of `write_cursor`; raise UnreadableCursorError for any other text."""
    if len(text) > LONGEST_CURSOR or not text.isascii():
        raise UnreadableCursorError
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise UnreadableCursorError from error
    if content[:1] != bytes([_CURSOR_FORM]) or len(content) % (2 * _NUMBER.size) != 1:
        raise UnreadableCursorError
    numbers = [number for (number,) in _NUMBER.iter_unpack(content[1:])]
    if max(numbers, default=0) >> 63:
        raise UnreadableCursorError
    middle = len(numbers) // 2
    return Cursor(tuple(numbers[:middle]), tuple(numbers[middle:]))


@dataclass(frozen=True, slots=True)
class UsageChange:
    """The change of a provider's usage and generation by claims (decision 0002).

    Attributes:
        used: Added units by class id; negative for released ones.
        steps: Increase of the generation.
        generation: The new generation; 0 if it was not increased.
        modified_at: Time of the increase, in seconds since the epoch; meaningless without one.
    """

    used: Mapping[int, int]
    steps: int
    generation: int
    modified_at: float

    def plus(self, other: "UsageChange") -> "UsageChange":
        """Return the sum of two changes of one provider, in either order."""
        used_units = Counter(self.used)
        used_units.update(other.used)
        last_change = max(self, other, key=lambda change: change.generation)
        return UsageChange(
            used_units, self.steps + other.steps, last_change.generation, last_change.modified_at
        )


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A trait or resource class; its last update or creation, if known, is in seconds since the epoch."""

    id: int
    name: str
    modified_at: float | None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All traits and resource classes, by name and by id.

    Standard traits precede custom ones, each in order of creation (contract page 90, section 5.2). Resource classes are
    in order of id.
    """

    traits: dict[str, CatalogueEntry]
    resource_classes: dict[str, CatalogueEntry]
    trait_by_id: dict[int, CatalogueEntry] = field(repr=False)
    class_by_id: dict[int, CatalogueEntry] = field(repr=False)
    trait_rank: dict[int, int] = field(repr=False)

    @classmethod
    def of(
        cls, traits: Iterable[CatalogueEntry], resource_classes: Iterable[CatalogueEntry]
    ) -> "Catalogue":
        """Build a catalogue from entries in any order."""
        ordered_traits = sorted(
            traits, key=lambda entry: (entry.name.startswith(CUSTOM_PREFIX), entry.id)
        )
        classes = sorted(resource_classes, key=lambda entry: entry.id)
        return cls(
            traits={entry.name: entry for entry in ordered_traits},
            resource_classes={entry.name: entry for entry in classes},
            trait_by_id={entry.id: entry for entry in ordered_traits},
            class_by_id={entry.id: entry for entry in classes},
            trait_rank={entry.id: rank for rank, entry in enumerate(ordered_traits)},
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """A consistent snapshot of everything committed after a cursor.

    Attributes:
        complete: Whether the whole inventory replaces all earlier state.
        records: Current state of changed providers.
        removed: Ids of deleted providers; some may never have been reported.
        catalogue: All traits and resource classes if any of them changed, else None.
        usage: Changes by claims of providers that are not in `records`, by id.
        whole: The whole inventory as arrays, instead of `records`.
    """

    cursor: Cursor
    complete: bool = False
    records: Sequence[ProviderRecord] = ()
    removed: Sequence[int] = ()
    catalogue: Catalogue | None = None
    usage: Mapping[int, UsageChange] = field(default_factory=dict)
    whole: "WholeInventory | None" = None


@dataclass(frozen=True, slots=True)
class ProviderEffect:
    """The effect of one transaction on a provider.

    Attributes:
        parts: The changed parts, possibly with unchanged ones.
        uuid: UUID of a deleted provider; None for an existing provider.
        tree: UUID of the former root if the root has changed.
        usage: The change by claims if nothing else has changed, else None.
    """

    parts: Part
    uuid: str | None = None
    tree: str | None = None
    usage: UsageChange | None = None


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """The change of a provider.

    Attributes:
        generation, root: The current generation and root; None if the provider is deleted.
        parts: The changed parts, possibly with unchanged ones.
        trees: Uuids of the former and current roots.
    """

    generation: int | None
    parts: Part
    trees: AbstractSet[str]
    root: str | None

    def after(self, earlier_change: "ProviderChange") -> "ProviderChange":
        """Combine this change with an earlier one of the same provider."""
        return ProviderChange(
            self.generation,
            self.parts | earlier_change.parts,
            self.trees | earlier_change.trees,
            self.root,
        )

    @property
    def may_be_a_move(self) -> bool:
        """Return whether the change may be a move to another tree, a creation or a deletion."""
        return self.parts == EVERYTHING or self.trees != {self.root}


@dataclass(frozen=True, slots=True)
class News:
    """The changes committed between two cursors; each transaction whole or not at all.

    Attributes:
        changes: Changes by provider uuid.
        catalogue: Whether traits or resource classes were created, deleted or renamed.
    """

    cursor: Cursor
    changes: Mapping[str, ProviderChange]
    catalogue: bool

    @property
    def is_empty(self) -> bool:
        """Return whether nothing has changed."""
        return not self.changes and not self.catalogue

    @classmethod
    def merge(cls, sequence: Sequence["News"]) -> "News":
        """Combine successive news, at least one."""
        merged_changes = dict(sequence[0].changes)
        for news in sequence[1:]:
            for uuid, change in news.changes.items():
                earlier_change = merged_changes.get(uuid)
                merged_changes[uuid] = (
                    change if earlier_change is None else change.after(earlier_change)
                )
        return cls(sequence[-1].cursor, merged_changes, any(news.catalogue for news in sequence))

    def within(self, roots: Mapping[str, str | None]) -> "News":
        """Return the changes in the trees of these providers.

        `roots` has the UUIDs of their roots; None for a provider that does not exist. Providers that move with an ancestor
        have no changes of their own; `treeclaim.store.feed.news` adds them.
        """
        tree_uuids = set(roots).union(root for root in roots.values() if root is not None)
        for provider_uuid in roots.keys() & self.changes.keys():
            tree_uuids |= self.changes[provider_uuid].trees
        kept_changes = {
            uuid: change
            for uuid, change in self.changes.items()
            if uuid in tree_uuids or not tree_uuids.isdisjoint(change.trees)
        }
        # The identity shows callers that nothing was dropped.
        return (
            self
            if len(kept_changes) == len(self.changes)
            else News(self.cursor, kept_changes, self.catalogue)
        )

    def with_members(self, members: Mapping[str, ProviderChange]) -> "News":
        """Return these news with providers that moved with an ancestor."""
        changes = dict(self.changes)
        for uuid, member in members.items():
            change = changes.get(uuid)
            changes[uuid] = member if change is None else change.after(member)
        return News(self.cursor, changes, self.catalogue)
